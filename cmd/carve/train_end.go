package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"carve/cmd/carve/internal/terminal"
	"carve/train"
)

// printEnd shows what a run came to, lets the model write a little, and says what can be done next.
func printEnd(ctx context.Context, out io.Writer, s train.Summary, o trainOptions) error {
	fmt.Fprintf(out, "\n%s", summaryTable(s))
	next := []string{
		fmt.Sprintf("carve generate --run %s --prompt 'func main() {' --tokens 200 --seed 1", s.Path),
		fmt.Sprintf("carve train --plan %s --time 10m", filepath.Join(s.Path, "plan.yaml")),
		"carve train --data your/text --time 10m",
	}
	if err := train.CanWrite(s.Path); err != nil {
		fmt.Fprintf(out, "\nno sample: %v\n", err)
		next = next[1:]
	} else if !o.noSample {
		if err := printSample(ctx, out, s, o); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\nnext:\n")
	for _, line := range next {
		fmt.Fprintln(out, "  "+line)
	}
	_, err := fmt.Fprintf(out, "the timeline of every rank is %s: open it at https://ui.perfetto.dev\n", filepath.Join(s.Path, "trace.json"))
	return err
}

// summaryTable is the summary as a table.
func summaryTable(s train.Summary) string {
	rows := [][]string{
		{"run", s.Path},
		{"steps", terminal.Thousands(int64(s.Steps))},
		{"tokens", terminal.Thousands(s.Tokens)},
		{"loss", fmt.Sprintf("%.4f", s.FinalLoss)},
	}
	if s.ValLoss == s.ValLoss { // measured
		rows = append(rows, []string{"validation loss", fmt.Sprintf("%.4f", s.ValLoss)})
	}
	rows = append(rows,
		[]string{"speed", terminal.Thousands(int64(s.TokensPerSecond)) + " tokens/s" + utilisation(", MFU %s", s.MFU)},
		[]string{"time", s.Elapsed.String()},
		[]string{"ranks", fmt.Sprint(s.World)},
		[]string{"peak memory", memoryLine(s.Peak)},
	)
	return terminal.Table([]string{"", ""}, rows)
}

// printSample lets the model write.
func printSample(ctx context.Context, out io.Writer, s train.Summary, o trainOptions) error {
	const prompt, tokens = "func main() {", 120
	fmt.Fprintf(out, "\nthe model writes:\n\n%s", prompt)
	err := train.Generate(ctx, train.GenerateOptions{
		Run: s.Path, Prompt: prompt, Tokens: tokens, Cores: o.cores,
		Sampling: train.Sampling{Seed: 1, Temperature: 0.7, TopK: 40},
	}, func(text string) error {
		_, err := io.WriteString(out, text)
		return err
	})
	fmt.Fprintln(out)
	return err
}
