//go:build !unix

package data

import (
	"io"
	"os"
)

// mapFile reads the whole file where files cannot be mapped.
func mapFile(f *os.File, size int64) ([]byte, error) {
	b := make([]byte, size)
	_, err := io.ReadFull(f, b)
	return b, err
}

func unmapFile([]byte) error { return nil }
