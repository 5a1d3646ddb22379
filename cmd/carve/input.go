package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// readSmall reads a plan or another description whole, but no more of it than any such file has: a device or a pipe that
// never ends is cut off, and then refused for its length by whoever parses it.
func readSmall(path string) ([]byte, error) {
	const most = 1 << 20
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	return text, errors.Join(err, f.Close())
}

// maxRanks is the most ranks that a flag may ask for: all run in this process.
const maxRanks = 1024

// coresFault says what is wrong with a number of cores; 0 means all.
func coresFault(cores int) error {
	if cores < 0 || cores > 1024 {
		return fmt.Errorf("--cores %d; use 1 to 1024, or 0 for all", cores)
	}
	return nil
}
