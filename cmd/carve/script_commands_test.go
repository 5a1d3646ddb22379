package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// commands are what scripts can do beside the usual.
func commands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"exits":      exits,
		"interrupts": interrupts,
		"waitfor":    waitfor,
		"repeat":     repeat,
	}
}

// exits runs a program and holds its exit code: "exits 2 carve train --plan x.yaml". Its output is left
// for stdout and stderr to match.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGUMENT...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	holdCode(ts, ts.Exec(args[1], args[2:]...), want)
}

// holdCode holds the exit code of a program that ended with err.
func holdCode(ts *testscript.TestScript, err error, want int) {
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// interrupts runs a program, sends it a signal when a file has a text, and holds its exit code, which is -1 when the
// signal killed it: "interrupts 3 INT run/metrics.jsonl 'step":5' carve train --out run". What it wrote goes to the files
// stdout.txt and stderr.txt.
func interrupts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 5 {
		ts.Fatalf("usage: interrupts CODE SIGNAL FILE TEXT PROGRAM ARGUMENT...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	signal := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[args[1]]
	path, err := exec.LookPath(args[4])
	ts.Check(err)
	var out, errOut bytes.Buffer
	cmd := exec.Command(path, args[5:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), &out, &errOut
	cmd.Env = append(os.Environ(), "CARVE_CACHE="+ts.Getenv("CARVE_CACHE"))
	ts.Check(cmd.Start())
	await(ts, args[2], args[3])
	ts.Check(cmd.Process.Signal(signal))
	err = cmd.Wait()
	ts.Check(os.WriteFile(ts.MkAbs("stdout.txt"), out.Bytes(), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("stderr.txt"), errOut.Bytes(), 0o644))
	ts.Logf("%s", errOut.String())
	holdCode(ts, err, want)
}

// waitfor waits until a file has a text: "waitfor run/metrics.jsonl 'step":5'".
func waitfor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfor FILE TEXT")
	}
	await(ts, args[0], args[1])
}

// await looks at a file again and again, for a minute.
func await(ts *testscript.TestScript, file, text string) {
	tick, limit := time.NewTicker(2*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-limit:
			ts.Fatalf("%s has no %q after a minute", file, text)
		}
		if got, err := os.ReadFile(ts.MkAbs(file)); err == nil && strings.Contains(string(got), text) {
			return
		}
	}
}

// repeat writes a file of many copies of a text: "repeat 100 'some words ' text.txt". "\n" is a new line, "\x00" a byte 0.
func repeat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: repeat COUNT TEXT FILE")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	text := strings.NewReplacer(`\n`, "\n", `\x00`, "\x00").Replace(args[1])
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(strings.Repeat(text, n)), 0o644))
}
