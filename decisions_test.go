package carve_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var requirement = regexp.MustCompile(`(?m)^(?:require)?\s+(\S+\.\S+) v\S+$`)

// unexplained returns the modules that a go.mod requires directly and that no text names in backticks.
func unexplained(goMod, decisions string) []string {
	var modules []string
	for _, m := range requirement.FindAllStringSubmatch(goMod, -1) {
		if !strings.Contains(decisions, "`"+m[1]+"`") {
			modules = append(modules, m[1])
		}
	}
	return modules
}

// TestDecisions holds that every direct dependency has its reason, and that every page is in the list of pages.
func TestDecisions(t *testing.T) {
	goMod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile("docs/decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var pages strings.Builder
	eachFile(t, "docs/decisions", ".md", func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(text)
		if name := filepath.Base(path); name != "README.md" && !strings.Contains(string(index), "("+name+")") {
			t.Errorf("docs/decisions/README.md does not list %s", name)
		}
	})
	for _, module := range unexplained(string(goMod), pages.String()) {
		t.Errorf("go.mod requires %s, and no page of docs/decisions says why", module)
	}
}

func TestDecisionsPlantedFaults(t *testing.T) {
	goMod := "module carve\n\ngo 1.26.0\n\nrequire example.org/one v1.0.0\n\nrequire (\n\texample.org/known v1.2.3\n\texample.org/two/v2 v2.0.0\n" +
		"\texample.org/three v0.0.0 // indirect\n)\n"
	if diff := cmp.Diff([]string{"example.org/one", "example.org/two/v2"}, unexplained(goMod, "| `example.org/known` | why |")); diff != "" {
		t.Errorf("unexplained modules (-want +got):\n%s", diff)
	}
}
