package plan_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carve/plan"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files of this package anew")

// golden compares text with a file, or writes it under -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// files reads beside the test data.
func files(name string) ([]byte, error) {
	if name == "this-machine" {
		return nil, nil
	}
	return os.ReadFile(filepath.Join("testdata", name))
}

// TestWhole checks what carve writes for a plan that says little: testdata/NAME.plan.yaml and .whole.yaml.
func TestWhole(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.plan.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no plans", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Load(data, files)
			if err != nil {
				t.Fatal(err)
			}
			whole := plan.Encode(p)
			golden(t, strings.Replace(path, ".plan.yaml", ".whole.yaml", 1), string(whole))
			again, err := plan.Load(whole, files)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p, again); diff != "" {
				t.Errorf("read back:\n%s", diff)
			}
			if diff := cmp.Diff(string(whole), string(plan.Encode(again))); diff != "" {
				t.Errorf("written again:\n%s", diff)
			}
		})
	}
}

// TestBad checks the exact words for wrong files: testdata/NAME.bad.yaml and .bad.txt.
func TestBad(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil || len(paths) < 40 {
		t.Fatalf("%d plans, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Load(data, files)
			if err == nil {
				t.Fatalf("is accepted as %+v", p)
			}
			golden(t, strings.Replace(path, ".bad.yaml", ".bad.txt", 1), err.Error()+"\n")
		})
	}
}
