package carve_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkStatic returns an error when an ELF program asks for a loader or for shared libraries.
func checkStatic(program io.ReaderAt) error {
	file, err := elf.NewFile(program)
	if err != nil {
		return err
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("the program has a segment %v: it is linked dynamically", part.Type)
		}
	}
	return nil
}

// TestBinaryIsStatic builds carve as `make install` does, without cgo, and holds that it needs no file of the machine to start.
func TestBinaryIsStatic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "carve")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", path, "./cmd/carve")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := checkStatic(file); err != nil {
		t.Error(err)
	}
}

func TestBinaryPlantedFaults(t *testing.T) {
	if err := checkStatic(elfWith(t, elf.PT_LOAD)); err != nil {
		t.Errorf("a static program is refused: %v", err)
	}
	for _, kind := range []elf.ProgType{elf.PT_INTERP, elf.PT_DYNAMIC} {
		if err := checkStatic(elfWith(t, kind)); err == nil {
			t.Errorf("a program with %v passes", kind)
		}
	}
	if err := checkStatic(strings.NewReader("#!/bin/sh\n")); err == nil {
		t.Error("a script passes")
	}
}

// elfWith is the smallest ELF program with one segment of a kind.
func elfWith(t *testing.T, kind elf.ProgType) io.ReaderAt {
	t.Helper()
	header := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64,
	}
	copy(header.Ident[:], "\x7fELF\x02\x01\x01")
	var file bytes.Buffer
	for _, part := range []any{header, elf.Prog64{Type: uint32(kind), Off: 120}} {
		if err := binary.Write(&file, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return bytes.NewReader(file.Bytes())
}
