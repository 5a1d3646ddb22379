package train

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDirectoryOfTwoRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "run")
	first, err := CreateDirectory(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{planFile, metricsFile} {
		if err := first.write(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	for name, open := range map[string]func(string) (*Directory, error){"new": CreateDirectory, "resumed": OpenDirectory} {
		if _, err := open(path); err == nil || !strings.Contains(err.Error(), "another process is running in "+path) {
			t.Errorf("%s while it runs: %v", name, err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateDirectory(path); err == nil || !strings.Contains(err.Error(), "holds a run; go on with --resume") {
		t.Errorf("new over an old one: %v", err)
	}
	second, err := OpenDirectory(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDirectoryRefuses(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "runs", "llama-001"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "runs", "llama-001", planFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name string
		open func() (*Directory, error)
		want string
	}{
		{"below a file", func() (*Directory, error) { return CreateDirectory(filepath.Join(file, "run")) }, "not a directory; choose another with --out"},
		{"numbered below a file", func() (*Directory, error) { return CreateNumbered(filepath.Join(file, "runs"), "a") }, "not a directory; choose another with --out"},
		{"not empty", func() (*Directory, error) { return CreateDirectory(folder) }, "is not empty (file)"},
		{"no run", func() (*Directory, error) { return OpenDirectory(folder) }, "it has no plan.yaml"},
		{"nothing, with a neighbour", func() (*Directory, error) { return OpenDirectory(filepath.Join(folder, "runs", "lama")) }, "has llama-001"},
		{"nothing", func() (*Directory, error) { return OpenDirectory(filepath.Join(folder, "x", "y")) }, "start one with carve train"},
	}
	for _, tc := range cases {
		if _, err := tc.open(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestDirectoryNumbers(t *testing.T) {
	root := filepath.Join(t.TempDir(), "runs")
	for _, want := range []string{"llama-001", "llama-002"} {
		d, err := CreateNumbered(root, "llama")
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(d.Path) != want {
			t.Errorf("made %s, want %s", d.Path, want)
		}
		if err := d.write(planFile, nil); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	d, err := CreateNumbered(root, "llama")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Path); !os.IsNotExist(err) {
		t.Errorf("a run that wrote nothing left %s: %v", d.Path, err)
	}
}

func TestDirectoryWriteFails(t *testing.T) {
	d := &Directory{Path: filepath.Join(t.TempDir(), "gone")}
	if err := d.write(planFile, nil); err == nil {
		t.Error("a file was written into a folder that does not exist")
	}
}
