package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"carve/train"

	"github.com/spf13/cobra"
)

// generateOptions are the flags of carve generate.
type generateOptions struct {
	run, prompt string
	tokens      int
	seed        uint64
	temperature float64
	topK        int
	cores       int
}

func newGenerate() *cobra.Command {
	var o generateOptions
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Let a trained model write",
		Long: `Continue a prompt with the newest checkpoint of a run. The prompt and what follows it go to standard output as
they come. Equal seeds write equal texts on equal machines.`,
		Example: `  carve generate --run runs/llama-5m-001 --prompt 'func main() {' --tokens 200
  carve generate --run runs/llama-5m-001 --prompt 'package ' --temperature 0`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runGenerate(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.run, "run", "", "folder of the run")
	f.StringVar(&o.prompt, "prompt", "", "text to continue; empty begins a text")
	f.IntVar(&o.tokens, "tokens", 200, "number of tokens to write at most")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the choice of tokens")
	f.Float64Var(&o.temperature, "temperature", 0.8, "0 takes the likeliest token, 1 draws as the model says")
	f.IntVar(&o.topK, "top-k", 40, "draw from so many of the likeliest tokens; 0 means all")
	f.IntVar(&o.cores, "cores", 0, "cores to use (default: all)")
	completeFiles(cmd, map[string][]string{"run": nil})
	return cmd
}

// runGenerate writes the prompt and its continuation.
func runGenerate(ctx context.Context, out, errOut io.Writer, o generateOptions) error {
	if err := o.check(); err != nil {
		return badInput(err)
	}
	ctx, release := signal.NotifyContext(ctx, os.Interrupt)
	defer release()
	begun := false
	err := train.Generate(ctx, train.GenerateOptions{
		Run: o.run, Prompt: o.prompt, Tokens: o.tokens, Cores: o.cores,
		Sampling: train.Sampling{Seed: o.seed, Temperature: o.temperature, TopK: o.topK},
		Warn:     func(err error) { fmt.Fprintln(errOut, "carve: warning:", err) },
	}, func(text string) error {
		if !begun {
			begun, text = true, o.prompt+text
		}
		_, err := io.WriteString(out, text)
		return err
	})
	var input *train.InputError
	switch {
	case ctx.Err() != nil:
		return errStopped
	case errors.As(err, &input):
		return badInput(err)
	case err != nil:
		return err
	}
	_, err = fmt.Fprintln(out)
	return err
}

// check holds that the flags have a meaning.
func (o generateOptions) check() error {
	var faults []error
	if o.run == "" {
		faults = append(faults, errors.New("--run is missing; name the folder of a run, such as runs/llama-5m-001"))
	}
	if o.tokens < 0 {
		faults = append(faults, fmt.Errorf("--tokens %d; use 0 or more", o.tokens))
	}
	if !(o.temperature >= 0 && o.temperature <= 100) {
		faults = append(faults, fmt.Errorf("--temperature %v; use 0 to 100", o.temperature))
	}
	if o.topK < 0 {
		faults = append(faults, fmt.Errorf("--top-k %d; use 0 or more", o.topK))
	}
	return errors.Join(append(faults, coresFault(o.cores))...)
}
