package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"carve/trace"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// twoRanks are the recorders of a step of two ranks with one event of each kind.
func twoRanks() []*trace.Recorder {
	var all []*trace.Recorder
	for rank := range 2 {
		r := trace.NewRecorder(rank, trace.Options{Events: 10, Collectives: 4, Splits: 4})
		main, stream := r.Lane("compute"), r.Lane("comm dp")
		dp := r.Group("dp", []int{0, 1})
		r.Span(trace.Span{Name: "ProfilerStep#3", Category: trace.Step, Lane: main, End: 2_000_000})
		r.Span(trace.Span{
			Name: "block 0 backward", Category: trace.Compute, Lane: main, Start: 1_000, End: 900_001,
			Args: trace.Args{{Key: "layer", Value: 0}, {Key: "micro_batch", Value: 2}},
		})
		r.Collective(trace.Span{Name: "all_reduce", Category: trace.Comm, Lane: stream, Start: 500_000, End: 1_234_567},
			trace.Collective{Name: "allreduce", DType: "Float", In: 1024, Out: 1024, Group: dp, Seq: 7, Src: trace.None, Dst: trace.None})
		r.Collective(trace.Span{Name: "all_to_all_v", Category: trace.Comm, Lane: stream, Start: 1_300_000, End: 1_400_000},
			trace.Collective{
				Name: "all_to_allv", DType: "BFloat16", In: 5, Out: 6, Group: dp, Seq: 8, Src: trace.None, Dst: trace.None,
				InSplit: []int{2, 3}, OutSplit: []int{2 + 2*rank, 4 - 2*rank},
			})
		name := "send"
		if rank == 1 {
			name = "recv"
		}
		r.Collective(trace.Span{Name: name, Category: trace.Comm, Lane: stream, Start: 1_400_000, End: 1_500_000},
			trace.Collective{Name: name, DType: "Int", In: 3, Out: 3, Group: dp, Seq: 1, Src: 0, Dst: 1})
		r.Count("activation", 1_000_000, 1<<20)
		r.Mark("data wait \"over\"", trace.Data, main, 1_999_999)
		all = append(all, r)
	}
	return all
}

func TestWriteChrome(t *testing.T) {
	for _, tc := range []struct {
		file    string
		dialect trace.Dialect
	}{{"perfetto.json", trace.Perfetto}, {"profiler.json", trace.Profiler}} {
		var out bytes.Buffer
		if err := trace.WriteChrome(&out, tc.dialect, twoRanks()...); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(out.Bytes()) {
			t.Errorf("%s is not JSON", tc.file)
		}
		golden(t, tc.file, out.Bytes())
	}
}

// chrome is a trace file as encoding/json reads it: the twin of the writer.
type chrome struct {
	TraceEvents []struct {
		Phase string         `json:"ph"`
		Pid   int            `json:"pid"`
		Tid   int            `json:"tid"`
		Cat   string         `json:"cat"`
		Name  string         `json:"name"`
		Ts    json.Number    `json:"ts"`
		Dur   json.Number    `json:"dur"`
		Args  map[string]any `json:"args"`
	} `json:"traceEvents"`
}

func read(t rapid.TB, text []byte) chrome {
	t.Helper()
	var c chrome
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return c
}

// TestStreaming holds that a trace written piece by piece, into whatever small room, has the events of one written
// at once, and names each rank and lane once.
func TestStreaming(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.String(), 0, 40).Draw(t, "names")
		room := rapid.IntRange(1, 10).Draw(t, "room")
		var pieces, whole bytes.Buffer
		small := trace.NewRecorder(5, trace.Options{Events: room})
		large := trace.NewRecorder(5, trace.Options{Events: 40})
		w := trace.NewWriter(&pieces, trace.Perfetto)
		for i, name := range names {
			for _, r := range []*trace.Recorder{small, large} {
				if r.Free() == 0 {
					if err := w.Write(r); err != nil {
						t.Fatal(err)
					}
				}
				r.Span(trace.Span{Name: name, Lane: r.Lane(name[:len(name)/2]), Start: trace.Tick(i), End: trace.Tick(i * 1001)})
			}
		}
		if err := errors.Join(w.Write(small), w.Close(), trace.WriteChrome(&whole, trace.Perfetto, large)); err != nil {
			t.Fatal(err)
		}
		a, b := read(t, pieces.Bytes()), read(t, whole.Bytes())
		if diff := cmp.Diff(spans(b), spans(a)); diff != "" {
			t.Errorf("spans (-whole +pieces):\n%s", diff)
		}
		if diff := cmp.Diff(len(b.TraceEvents), len(a.TraceEvents)); diff != "" {
			t.Errorf("events (-whole +pieces):\n%s", diff)
		}
	})
}

func spans(c chrome) (text []string) {
	for _, e := range c.TraceEvents {
		if e.Phase == "X" {
			text = append(text, e.Name+" "+e.Ts.String()+" "+e.Dur.String())
		}
	}
	return text
}

func TestTimes(t *testing.T) {
	r := trace.NewRecorder(0, trace.Options{})
	for _, at := range []trace.Tick{0, 1, 999, 1000, -1, -1001, 1 << 53, 1<<62 + 7} {
		r.Span(trace.Span{Start: at, End: at - 5})
	}
	var out bytes.Buffer
	if err := trace.WriteChrome(&out, trace.Perfetto, r); err != nil {
		t.Fatal(err)
	}
	want := []string{
		" 0.000 0.000", " 0.001 0.000", " 0.999 0.000", " 1.000 0.000", " -0.001 0.000", " -1.001 0.000",
		" 9007199254740.992 0.000", " 4611686018427387.911 0.000",
	}
	if diff := cmp.Diff(want, spans(read(t, out.Bytes()))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFull holds that a full recorder keeps what it has, counts what it loses, and is as good as new after Reset.
func TestFull(t *testing.T) {
	r := trace.NewRecorder(0, trace.Options{Events: 5, Collectives: 2, Splits: 3})
	g := r.Group("ep", []int{0, 1})
	splits := trace.Collective{Group: g, InSplit: []int{1}, OutSplit: []int{2}}
	for range 2 {
		r.Collective(trace.Span{}, splits) // room for the splits of one
	}
	r.Collective(trace.Span{}, trace.Collective{Group: g})
	r.Collective(trace.Span{}, trace.Collective{Group: g}) // a third collective
	if r.Len() != 2 || r.Dropped() != 2 {
		t.Errorf("%d events and %d dropped, want 2 and 2", r.Len(), r.Dropped())
	}
	for range 4 {
		r.Mark("m", trace.Data, 0, 0)
	}
	if r.Len() != 5 || r.Free() != 0 || r.Dropped() != 3 {
		t.Errorf("%d events, room for %d and %d dropped, want 5, 0 and 3", r.Len(), r.Free(), r.Dropped())
	}
	r.Reset()
	r.Collective(trace.Span{}, splits)
	if r.Len() != 1 || r.Free() != 4 {
		t.Errorf("after Reset: %d events and room for %d, want 1 and 4", r.Len(), r.Free())
	}
}

func TestNoAllocation(t *testing.T) {
	r := trace.NewRecorder(0, trace.Options{Events: 1000})
	g := r.Group("dp", []int{0, 1})
	splits := []int{1, 2}
	if n := testing.AllocsPerRun(100, func() {
		r.Span(trace.Span{Name: "a", Args: trace.Args{{Key: "layer", Value: 1}}})
		r.Collective(trace.Span{Name: "b"}, trace.Collective{Group: g, InSplit: splits})
		r.Count("c", 1, 2)
		r.Mark("d", trace.Data, r.Lane("x"), 3)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// failing fails from its second write on.
type failing struct{ writes int }

var errDisk = errors.New("no space")

func (f *failing) Write(p []byte) (int, error) {
	if f.writes++; f.writes > 1 {
		return 0, errDisk
	}
	return len(p), nil
}

func TestWriterErrors(t *testing.T) {
	w := trace.NewWriter(&failing{}, trace.Perfetto)
	if err := w.Write(trace.NewRecorder(0, trace.Options{})); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Write(trace.NewRecorder(1, trace.Options{})); !errors.Is(err, errDisk) {
			t.Errorf("Write returns %v", err)
		}
	}
	if err := w.Close(); !errors.Is(err, errDisk) {
		t.Errorf("Close returns %v", err)
	}
	if w.Close() == nil || w.Write(trace.NewRecorder(0, trace.Options{})) == nil {
		t.Error("a closed writer writes")
	}
	var empty bytes.Buffer
	if err := trace.WriteChrome(&empty, trace.Perfetto); err != nil {
		t.Fatal(err)
	}
	read(t, empty.Bytes())
}

func BenchmarkWriter(b *testing.B) {
	r := trace.NewRecorder(0, trace.Options{Events: 1000})
	lane, g := r.Lane("comm dp"), r.Group("dp", []int{0, 1})
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Perfetto)
	for b.Loop() {
		for i := range trace.Tick(1000) {
			r.Collective(trace.Span{Name: "all_reduce", Category: trace.Comm, Lane: lane, Start: i, End: i + 1}, trace.Collective{Group: g})
		}
		out.Reset()
		if err := w.Write(r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/event")
}
