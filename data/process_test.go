package data

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"carve/token"
)

// TestMain lets the test binary act as another process that prepares a source:
// it does so when CARVE_PREPARE names the source and the cache.
func TestMain(m *testing.M) {
	source, cache, ok := strings.Cut(os.Getenv("CARVE_PREPARE"), "\n")
	if !ok {
		os.Exit(m.Run())
	}
	if err := prepareAsProcess(source, cache); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// prepareAsProcess says "half" in the middle of the work and waits for a line of
// input, then says what it made.
func prepareAsProcess(source, cache string) error {
	ctx := context.Background()
	s, err := Open(ctx, source, SourceOptions{})
	if err != nil {
		return err
	}
	in := bufio.NewReader(os.Stdin)
	said := false
	ds, err := Prepare(ctx, s, token.Bytes{}, PrepareOptions{Cache: cache, Progress: func(p Progress) {
		if !said && p.Done > p.Total/2 {
			said = true
			fmt.Println("half")
			_, _ = in.ReadString('\n') // or the end of input
		}
	}})
	if err != nil {
		return err
	}
	defer func() { _ = ds.Close() }()
	fmt.Println("made", ds.Train.Identity())
	return ds.Verify(ctx)
}

// process is a child that prepares.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startProcess(t *testing.T, source, cache string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CARVE_PREPARE="+source+"\n"+cache)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &process{cmd, in, bufio.NewScanner(out)}
}

// line is the next line that the child says.
func (p *process) line() string {
	p.out.Scan()
	return p.out.Text()
}

// bigTree is enough text for several pieces.
func bigTree(t *testing.T) string {
	return tree(t, map[string]string{"a": strings.Repeat("a line of text\n", 300_000)})
}

func TestTwoProcesses(t *testing.T) {
	source, cache := bigTree(t), filepath.Join(t.TempDir(), "cache")
	one, two := startProcess(t, source, cache), startProcess(t, source, cache)
	if a, b := one.line(), two.line(); a != "half" || b != "half" {
		t.Fatalf("the children say %q and %q", a, b)
	}
	shut(t, one.in)
	shut(t, two.in)
	a, b := one.line(), two.line()
	if !strings.HasPrefix(a, "made ") || a != b {
		t.Errorf("the children say %q and %q", a, b)
	}
	for _, p := range []*process{one, two} {
		if err := p.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Fields(entries(t, cache)); len(got) != 1 || !strings.HasPrefix(got[0], "tokens-") {
		t.Errorf("the cache holds %v", got)
	}
}

// TestKilledProcess kills a child in the middle of its work.
func TestKilledProcess(t *testing.T) {
	source, cache := bigTree(t), filepath.Join(t.TempDir(), "cache")
	child, living := startProcess(t, source, cache), startProcess(t, source, cache)
	if a, b := child.line(), living.line(); a != "half" || b != "half" {
		t.Fatalf("the children say %q and %q", a, b)
	}
	if err := child.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.cmd.Wait(); err == nil {
		t.Error("the killed child succeeds")
	}
	if n := len(strings.Fields(entries(t, cache))); n != 4 { // two workshops, two locks
		t.Fatalf("%d entries after the kill, want those of two processes", n)
	}
	s := open(t, source, SourceOptions{})
	if ds, err := openPrepared(smallBuilder(t, s, token.Bytes{}, PrepareOptions{Cache: cache}).path); err == nil {
		shut(t, ds)
		t.Error("half a dataset opens")
	}
	ds, err := Prepare(t.Context(), s, token.Bytes{}, PrepareOptions{Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	cleanup(t, ds)
	if n := len(strings.Fields(entries(t, cache))); n != 3 { // what the living one builds stays
		t.Errorf("the cache holds %s", entries(t, cache))
	}
	shut(t, living.in)
	if got := living.line(); got != "made "+ds.Train.Identity() {
		t.Errorf("the living child says %q", got)
	}
	if err := living.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if got := entries(t, cache); !strings.HasPrefix(got, "tokens-") || strings.Contains(got, " ") {
		t.Errorf("the cache holds %s", got)
	}
}
