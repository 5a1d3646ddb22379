package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// program is one command with what it is told by its environment.
type program struct {
	args []string
	env  []string // added to this process's
}

// result is what a finished program left.
type result struct {
	stdout []byte
	peak   float64 // bytes resident at most, of the largest process
}

// runLimit ends a program that hangs; the longest honest run takes about a minute.
const runLimit = 10 * time.Minute

// run runs the program to its end. A failure carries the last lines of its standard error.
func (p program) run(ctx context.Context) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
	// A group of its own, so that what the program started ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return result{}, fmt.Errorf("%s: %w", strings.Join(p.args, " "), context.Cause(ctx))
	}
	if err != nil {
		return result{}, fmt.Errorf("%s: %w\n%s", strings.Join(p.args, " "), err, tail(stderr.String(), 12))
	}
	return result{stdout.Bytes(), peakBytes(cmd.ProcessState)}, nil
}

// peakBytes is the peak resident size of a process: Linux counts in KiB, Darwin in bytes.
func peakBytes(state *os.ProcessState) float64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return float64(usage.Maxrss)
	}
	return float64(usage.Maxrss) * 1024
}

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// decodeRows reads JSON objects, one after another or inside one array.
func decodeRows[T any](text []byte) ([]T, error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '[' {
		var rows []T
		err := json.Unmarshal(trimmed, &rows)
		return rows, err
	}
	var rows []T
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var row T
		switch err := decoder.Decode(&row); {
		case errors.Is(err, io.EOF):
			return rows, nil
		case err != nil:
			return nil, fmt.Errorf("row %d is no JSON object: %w", len(rows)+1, err)
		}
		rows = append(rows, row)
	}
}

// library finds a shared library of Debian's whose path matches the pattern.
func library(pattern, debianPackage string) (string, error) {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no %s; install Debian's %s", pattern, debianPackage)
	}
	return found[0], nil
}
