package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// script writes an executable shell script and returns its path.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fake")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// counted is a contender that returns 1, 2, 3 … times its speed and logs its name.
func counted(name string, of side, speed float64, log *[]string) contender {
	calls := 0.0
	return contender{name, of, func(context.Context) ([]float64, error) {
		calls++
		*log = append(*log, name)
		return []float64{speed * calls, 100 / speed}, nil
	}}
}

func TestRaceInterleaves(t *testing.T) {
	var order []string
	got, err := race(t.Context(), 3, []quantity{{"speed", "GF/s", higher}, {"memory", "MiB", lower}}, []contender{
		counted("slow", theirs, 1, &order), counted("fast", theirs, 2, &order), counted("carve", ours, 5, &order),
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if want, have := "slow fast carve slow fast carve slow fast carve", strings.Join(order, " "); have != want {
		t.Errorf("ran %q, want %q", have, want)
	}
	for i, want := range []string{"fast 4 carve 10 2.5 2.5 2.5", "fast 50 carve 20 0.4 0.4 0.4"} {
		c := got[i]
		theirs, ours := c.winner(c.Theirs), c.winner(c.Ours)
		middle, low, high := c.ratio()
		if have := fmt.Sprint(theirs.Name, " ", theirs.median(), " ", ours.Name, " ", ours.median(), " ", middle, low, high); have != want {
			t.Errorf("%s: %q, want %q", c.Name, have, want)
		}
	}
}

func TestRaceCountsNumbers(t *testing.T) {
	short := contender{"short", ours, func(context.Context) ([]float64, error) { return nil, nil }}
	if _, err := race(t.Context(), 1, []quantity{{"speed", "GF/s", higher}}, []contender{short}, io.Discard); err == nil {
		t.Error("a contender without numbers is accepted")
	}
}

func TestRatioOfRounds(t *testing.T) {
	c := comparison{Theirs: []series{{"a", []float64{10, 20, 10}}}, Ours: []series{{"b", []float64{20, 20, 15}}}}
	middle, low, high := c.ratio()
	if middle != 2 || low != 1 || high != 2 {
		t.Errorf("ratio %v, rounds %v to %v; want 2, 1 to 2", middle, low, high)
	}
}

func TestMedian(t *testing.T) {
	values := []float64{3, 1, 2, 10}
	if got := median(values); got != 2.5 {
		t.Errorf("median of four is %v, want 2.5", got)
	}
	if got := median(values[:3]); got != 2 {
		t.Errorf("median of three is %v, want 2", got)
	}
	if values[0] != 3 {
		t.Error("median reordered its argument")
	}
}

func TestTable(t *testing.T) {
	r := report{
		Command: "go run ./bench x", Machine: machine{"CPU", 2, "linux/amd64", 0.25}, Rounds: 2,
		Comparisons: []comparison{{
			Name: "tiny", Unit: "tokens/s", Theirs: []series{{"PyTorch", []float64{1000, 3000}}}, Ours: []series{{"carve 2×1", []float64{4000, 4500}}},
		}},
	}
	want := "`go run ./bench x`: CPU, 2 cores, linux/amd64, load 0.2 before, medians of 2 rounds.\n\n" +
		"| comparison | unit | best peer | | carve | | ratio | of one round |\n|---|---|---|---:|---|---:|---:|---|\n" +
		"| tiny | tokens/s | PyTorch | 2,000 | carve 2×1 | 4,250 | **2.12** | 1.50 to 4.00 |\n"
	var out bytes.Buffer
	if err := r.writeTable(&out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	file := filepath.Join(t.TempDir(), "out.json")
	if err := r.writeFile(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"ratio": 2.125`) {
		t.Errorf("no ratio in %s", text)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0.5: "0.50", 12.34: "12.3", 999.6: "1,000", 1234567: "1,234,567", 220: "220"} {
		if got := number(v); got != want {
			t.Errorf("%v is printed %q, want %q", v, got, want)
		}
	}
}

func TestDecodeRows(t *testing.T) {
	for _, text := range []string{`{"m":1}{"m":2}`, "{\"m\":1}\n{\"m\":2}\n", ` [{"m":1},{"m":2}]`} {
		rows, err := decodeRows[product]([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff([]product{{M: 1}, {M: 2}}, rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{`{"m":1} tail`, `[{"m":1}`, `{"m":"one"}`} {
		if _, err := decodeRows[product]([]byte(text)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestTrainer(t *testing.T) {
	fake := script(t, `echo '{"tokens_per_second": 1, "gflops": 9, "peak_rss_bytes": 1}'
[ "$WEIGHT" = heavy ] && echo '{"tokens_per_second": 2000, "gflops": 40, "peak_rss_bytes": 1099511627776}'
exit 0
`)
	heavy, err := trainer("heavy", ours, program{[]string{fake}, []string{"WEIGHT=heavy"}}).run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{2000, 40, 1 << 20}, heavy); diff != "" {
		t.Errorf("last row, claimed memory (-want +got):\n%s", diff)
	}
	light, err := trainer("light", ours, program{args: []string{fake}}).run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if light[2] < 0.1 {
		t.Errorf("a program that claims one byte is believed: %v MiB", light[2])
	}
}

func TestTrainerFaults(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"fails", "echo out of luck >&2; exit 3", "exit status 3\nout of luck"},
		{"no rows", "exit 0", "no tokens_per_second"},
		{"no rate", `echo '{"gflops": 3}'`, "no tokens_per_second"},
		{"no JSON", "echo hello", "row 1 is no JSON object"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := trainer("fake", ours, program{args: []string{script(t, tc.body)}}).run(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// kernelRows is what a carve prints that measures two products on one and two threads, and more that does not count.
const kernelRows = `{"op":"gemm_nn","dtype":"bf16","m":8,"n":4,"k":2,"threads":1,"gflops":1,"peak_gflops":117}
{"op":"gemm_nn","dtype":"fp32","m":8,"n":4,"k":2,"threads":1,"gflops":90,"peak_gflops":100}
{"op":"gemm_nn","dtype":"fp32","m":8,"n":4,"k":2,"threads":2,"gflops":180,"peak_gflops":200}
{"op":"rmsnorm","dtype":"fp32","m":8,"n":4,"k":0,"threads":2,"gflops":3,"peak_gflops":200}
{"op":"gemm_tn","dtype":"fp32","m":8,"n":4,"k":3,"threads":1,"gflops":80,"peak_gflops":100}
{"op":"gemm_tn","dtype":"fp32","m":8,"n":4,"k":3,"threads":2,"gflops":160,"peak_gflops":200}
`

func TestCarveProducts(t *testing.T) {
	o := options{carve: script(t, "cat <<'ROWS'\n"+kernelRows+"ROWS\n"), cores: 2}
	cases, err := carveCases(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range cases {
		names = append(names, c.name())
	}
	want := []string{"nn 8×4×2, 1 thread", "tn 8×4×3, 1 thread", "nn 8×4×2, 2 threads", "tn 8×4×3, 2 threads"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Fatalf("cases (-want +got):\n%s", diff)
	}
	var peaks [][]float64
	rates, err := carveProducts(o, cases, &peaks).run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{90, 80, 180, 160}, rates); diff != "" {
		t.Errorf("rates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]float64{{100, 100, 200, 200}}, peaks); diff != "" {
		t.Errorf("peaks (-want +got):\n%s", diff)
	}
	cases = append(cases, gemmCase{product{"nt", 1, 1, 1}, 2})
	if _, err := carveProducts(o, cases, &peaks).run(t.Context()); err == nil {
		t.Error("a missing row is accepted")
	}
	o.carve = script(t, "exit 0")
	if _, err := carveCases(t.Context(), o); err == nil {
		t.Error("a carve without rows is accepted")
	}
}

func TestPeerRates(t *testing.T) {
	// The fake says in gflops how many threads it was given, and measures what it was asked for.
	b := blas{"fake", script(t, `shift
for a in "$@"; do echo "$a" | sed "s/\(.*\):\(.*\):\(.*\):\(.*\)/{\"op\":\"\1\",\"m\":\2,\"n\":\3,\"k\":\4,\"gflops\":$OMP_NUM_THREADS}/"; done
`), nil}
	cases := []gemmCase{{product{"nn", 8, 4, 2}, 1}, {product{"tn", 8, 4, 3}, 1}, {product{"nn", 8, 4, 2}, 2}}
	got, err := b.contender(options{seconds: 1}, cases).run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{1, 1, 2}, got); diff != "" {
		t.Errorf("rates (-want +got):\n%s", diff)
	}
	b.binary = script(t, `echo '{"op":"nt","m":8,"n":4,"k":2,"gflops":7}'`)
	if _, err := b.contender(options{seconds: 1}, cases[:1]).run(t.Context()); err == nil {
		t.Error("a row for another product is accepted")
	}
}

func TestRunNamesFaults(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{"-rounds", "0", "-precision", "fp8", "fly"}, &out, io.Discard)
	if err == nil {
		t.Fatal("three faults are accepted")
	}
	for _, want := range []string{`no measure "fly"`, "rounds, cores and seconds", `"fp8"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}

// TestCancelEndsChildren holds that what a contender started ends with it: the pipe that its child holds open is closed.
func TestCancelEndsChildren(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	fake := script(t, "exec 3>"+pipe+"; echo ready >&3; sleep 600 & wait\n")
	done := make(chan error, 1)
	go func() {
		_, err := program{args: []string{fake}}.run(ctx)
		done <- err
	}()
	reader, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if _, err := io.ReadFull(reader, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("a cancelled program succeeded")
	}
	if rest, err := io.ReadAll(reader); len(rest) > 0 || err != nil {
		t.Errorf("read %q, %v after the end", rest, err)
	}
}

// TestCopyBounds works a bound out by hand: at 10 GB/s, 2 ranks move 4 × 64 MiB for an all-gather and 3 × 64 MiB for a reduce-scatter.
func TestCopyBounds(t *testing.T) {
	o := options{carve: script(t, `echo '{"memory": {"copy_gbs": 10}}'`)}
	var got []comparison
	for _, c := range commCases(mpiOps) {
		got = append(got, comparison{Name: c.name(2) + ", against MPI", Ours: []series{{Name: "carve", Rounds: []float64{1, 2}}}})
	}
	bounds, err := copyBounds(t.Context(), o, 2, got)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"all_gather 64 MiB, 2 ranks, against the copy bandwidth":     4 * (64 << 20) / 10e3,
		"reduce_scatter 64 MiB, 2 ranks, against the copy bandwidth": 3 * (64 << 20) / 10e3,
	}
	for _, b := range bounds {
		if us, ok := want[b.Name]; ok && b.Theirs[0].median() != us {
			t.Errorf("%s: %v µs, want %v", b.Name, b.Theirs[0].median(), us)
		}
		delete(want, b.Name)
	}
	if len(bounds) != 8 || len(want) > 0 {
		t.Errorf("%d bounds, without %v", len(bounds), want)
	}
	o.carve = script(t, `echo '{}'`)
	if _, err := copyBounds(t.Context(), o, 2, got); err == nil {
		t.Error("no bandwidth is one")
	}
}
