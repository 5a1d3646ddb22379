package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// report is everything that one call measured.
type report struct {
	Command     string       `json:"command"`
	Machine     machine      `json:"machine"`
	Rounds      int          `json:"rounds"`
	Comparisons []comparison `json:"comparisons"`
}

// machine says where the numbers come from, and how busy it was before anything ran.
type machine struct {
	Processor string  `json:"processor"`
	Cores     int     `json:"cores"`
	System    string  `json:"system"`
	Load      float64 `json:"load"` // one-minute load average before the first run
}

// describeMachine reads what Linux tells; elsewhere the processor is unnamed.
func describeMachine() machine {
	m := machine{Processor: "unnamed", Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.Processor = strings.TrimSpace(value)
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		m.Load, _ = strconv.ParseFloat(first, 64)
	}
	return m
}

// MarshalJSON adds what the table shows: the winners, their medians, and the ratio.
func (c comparison) MarshalJSON() ([]byte, error) {
	type plain comparison
	middle, low, high := c.ratio()
	t, o := c.winner(c.Theirs), c.winner(c.Ours)
	return json.Marshal(struct {
		plain
		BestTheirs   string  `json:"best_theirs"`
		BestOurs     string  `json:"best_ours"`
		MedianTheirs float64 `json:"median_theirs"`
		MedianOurs   float64 `json:"median_ours"`
		Ratio        float64 `json:"ratio"`
		RatioLow     float64 `json:"ratio_low"`
		RatioHigh    float64 `json:"ratio_high"`
	}{plain(c), t.Name, o.Name, t.median(), o.median(), middle, low, high})
}

// writeFile writes the report as JSON.
func (r report) writeFile(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// writeTable writes the report as a Markdown table, one line a comparison.
func (r report) writeTable(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "`%s`: %s, %d cores, %s, load %.1f before, medians of %d rounds.\n\n",
		r.Command, r.Machine.Processor, r.Machine.Cores, r.Machine.System, r.Machine.Load, r.Rounds)
	fmt.Fprint(w, "| comparison | unit | best peer | | carve | | ratio | of one round |\n|---|---|---|---:|---|---:|---:|---|\n")
	for _, c := range r.Comparisons {
		t, o := c.winner(c.Theirs), c.winner(c.Ours)
		middle, low, high := c.ratio()
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | **%.2f** | %.2f to %.2f |\n",
			c.Name, c.Unit, t.Name, number(t.median()), o.Name, number(o.median()), middle, low, high)
	}
	return w.Flush()
}

// number prints a value with three or more significant digits and thousands separated.
func number(v float64) string {
	switch {
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
