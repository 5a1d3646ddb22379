package train

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carve/tensor"

	"github.com/google/go-cmp/cmp"
)

// TestEncode holds the objects that scripts rely on.
func TestEncode(t *testing.T) {
	peak := tensor.Usage{}
	peak[tensor.Parameter], peak[tensor.Activation] = 100, 7
	cases := []struct {
		event Event
		want  string
	}{
		{
			Step{Step: 3, Loss: 2.5, GradNorm: 1, TokensPerSecond: 1000, MFU: 0.5, ExposedComm: 0.25, DataWait: 0.125, Rate: 1e-3},
			`{"event":"step","step":3,"loss":2.5,"grad_norm":1,"tokens_per_second":1000,"mfu":0.5,"exposed_comm_seconds":0.25,` +
				`"data_wait_seconds":0.125,"learning_rate":0.001}`,
		},
		{Validation{Step: 3, Loss: math.NaN(), Perplexity: math.Inf(1)}, `{"event":"validation","step":3,"val_loss":null,"perplexity":null}`},
		{Saved{Step: 3, Path: "p", Bytes: 8, Elapsed: 0.5}, `{"event":"checkpoint","step":3,"path":"p","bytes":8,"seconds":0.5}`},
		{
			Summary{Outcome: Completed, Steps: 3, FinalLoss: 2.5, ValLoss: math.NaN(), Tokens: 96, TokensPerSecond: 1000, Elapsed: 2, World: 2, Peak: peak, Path: "p"},
			`{"event":"summary","outcome":"completed","steps":3,"final_loss":2.5,"val_loss":null,"tokens":96,"tokens_per_second":1000,"mfu":0,` +
				`"seconds":2,"world":2,"peak_memory_bytes":{"activation":7,"communication":0,"gradient":0,"kv-cache":0,"optimizer":0,"parameter":100,` +
				`"workspace":0},"run_dir":"p"}`,
		},
	}
	for _, tc := range cases {
		got, ok := Encode(tc.event)
		if diff := cmp.Diff(tc.want, string(got)); !ok || diff != "" {
			t.Errorf("%T (-want +got):\n%s", tc.event, diff)
		}
	}
	for _, e := range []Event{Preparing{}, Text{}, Started{}, Warning{}} {
		if text, ok := Encode(e); ok {
			t.Errorf("%T is encoded as %s", e, text)
		}
	}
}

// TestMetricsAreCut holds that metrics that are opened at a step have the lines up to it, and that half a line, or one
// that is none, is cut off with all that follows.
func TestMetricsAreCut(t *testing.T) {
	line := func(step string) string { return `{"event":"step","step":` + step + `,"loss":` + step + `.5}` + "\n" }
	whole := line("1") + line("2") + `{"event":"validation","step":2}` + "\n" + line("3")
	cases := []struct {
		name, text string
		step       int
		keep       string
		loss       float64
	}{
		{"middle", whole, 2, line("1") + line("2") + `{"event":"validation","step":2}` + "\n", 2.5},
		{"all", whole, 3, whole, 3.5},
		{"none", whole, 0, "", math.NaN()},
		{"half a line", line("1") + `{"event":"st`, 5, line("1"), 1.5},
		{"no JSON", line("1") + "oops\n" + line("2"), 5, line("1"), 1.5},
		{"no step", line("1") + "{}\n" + line("2"), 5, line("1"), 1.5},
		{"empty", "", 5, "", math.NaN()},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), metricsFile)
			if err := os.WriteFile(path, []byte(tc.text), 0o644); err != nil {
				t.Fatal(err)
			}
			m, err := openMetrics(path, tc.step)
			if err != nil {
				t.Fatal(err)
			}
			m.Event(Step{Step: 9})
			m.Event(Warning{})
			if err := m.close(); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, added, _ := strings.Cut(string(text), `{"event":"step","step":9,`)
			if got != tc.keep || strings.Count(added, "\n") != 1 {
				t.Errorf("the file is %q, want %q and a line", text, tc.keep)
			}
			if m.loss != tc.loss && !(math.IsNaN(m.loss) && math.IsNaN(tc.loss)) {
				t.Errorf("last loss %v, want %v", m.loss, tc.loss)
			}
		})
	}
}
