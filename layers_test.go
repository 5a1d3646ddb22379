package carve_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layer is one package of the module and everything that it may import: packages of the module, and
// packages of other modules. A pure package maps values to values: no clock, I/O, log or goroutine helper.
type layer struct {
	name    string
	imports string // space separated
	modules string // space separated
	kind    kind
}

type kind int

const (
	effects kind = iota
	pure
)

// layers is the table of the architecture, from the bottom up: a package imports only from above its
// own line. An unlisted package fails, an unlisted import fails, and so does a listed import that no
// file uses. A new edge says why in its commit.
var layers = []layer{
	// pure descriptions
	{"unit", "", "", pure},
	{"internal/document", "unit", "", pure},
	{"mesh", "", "", pure},
	{"model", "internal/document unit", "", pure},
	{"cluster", "internal/document unit", "", pure},
	{"plan", "cluster internal/document mesh model unit", "github.com/goccy/go-yaml", pure},

	// Program and Trace
	{"schedule", "", "", pure},
	{"trace", "", "", pure},
	{"collective", "cluster unit", "", pure},

	// what this computer is
	{"machine", "unit", "github.com/klauspost/cpuid/v2", effects},

	// shapes, arena, devices
	{"tensor/internal/kernel", "", "golang.org/x/sys", effects},
	{"tensor", "unit tensor/internal/kernel", "golang.org/x/sys", effects},

	// collectives
	{"comm/flight", "", "", pure},
	{"comm", "cluster collective comm/flight tensor trace unit", "", effects},
	{"comm/timing", "comm tensor unit", "", effects},
	{"comm/commtest", "comm tensor", "pgregory.net/rapid", effects},

	// parallel layers, optimizers
	{"nn", "comm mesh model tensor unit", "", effects},
	{"optim", "comm mesh nn tensor unit", "", effects},

	// the step of a plan on one rank
	{"parallel", "comm mesh nn optim plan schedule tensor", "", effects},

	// durable state, samples, tokenizers
	{"token", "", "", effects},
	{"data", "token unit", "github.com/cespare/xxhash/v2", effects},
	{"checkpoint", "mesh tensor", "github.com/cespare/xxhash/v2", effects},

	// prediction
	{"record", "comm mesh nn parallel plan schedule tensor", "", effects},
	{"ledger", "mesh nn parallel plan record tensor unit", "", pure},
	{"explain", "cluster comm mesh model nn parallel plan record schedule tensor unit", "", effects},
	{"cost", "cluster collective mesh tensor unit", "", pure},
	{"sim", "comm cost mesh model parallel plan record schedule tensor trace unit", "", pure},
	{"price", "collective cost mesh model unit", "", pure},
	{"search", "cost mesh model plan price unit", "", pure},
	{"fidelity", "cluster cost model price unit", "", pure},

	// whole jobs
	{
		"train", "checkpoint cluster comm comm/flight data internal/document mesh model nn optim parallel plan tensor token trace unit",
		"github.com/cespare/xxhash/v2", effects,
	},

	{"verify", "comm mesh model nn parallel plan schedule tensor unit", "", effects},

	// faces
	{"cmd/carve/internal/terminal", "", "golang.org/x/term", effects},
	{
		"cmd/carve", "cluster cmd/carve/internal/terminal collective comm comm/flight comm/timing cost explain fidelity internal/document ledger machine mesh model parallel plan price record search sim tensor trace train unit verify",
		"github.com/spf13/cobra github.com/spf13/pflag", effects,
	},

	// the race against peers: asks the built binary, imports nothing
	{"bench", "", "", effects},
}

// reserved are imports that only the named packages may use, whatever their line says of modules.
var reserved = map[string][]string{
	"unsafe":                   {"tensor", "comm"},
	"github.com/goccy/go-yaml": {"plan"},
	"github.com/spf13/cobra":   {"cmd"},
}

// impure are the standard packages that a pure package does without.
var impure = []string{"os", "time", "net", "log", "io/fs", "io/ioutil", "math/rand", "sync", "syscall", "context", "runtime", "unsafe"}

func TestLayers(t *testing.T) {
	graph, err := readImports(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range checkLayers(layers, graph) {
		t.Error(fault)
	}
}

// TestLayersCatches plants one fault of each kind.
func TestLayersCatches(t *testing.T) {
	table := []layer{
		{"low", "", "", pure},
		{"high", "low", "example.org/lib", effects},
	}
	legal := map[string][]string{
		"low":  {"fmt"},
		"high": {"carve/low", "example.org/lib/part", "os"},
	}
	cases := []struct {
		name    string
		pkg     string
		imports []string
		want    string
	}{
		{"unlisted package", "new", nil, "package new is not in the table of layers"},
		{"upward edge", "low", []string{"carve/high"}, "low imports carve/high, which its line does not allow"},
		{"unlisted module", "high", []string{"carve/low", "example.org/lib", "example.com/x"}, "high imports example.com/x, which its line does not allow"},
		{"dead edge", "high", []string{"example.org/lib"}, "high lists low but no file imports it"},
		{"dead module", "high", []string{"carve/low"}, "high lists example.org/lib but no file imports it"},
		{"impure", "low", []string{"time"}, "low is pure and imports time"},
		{"reserved", "low", []string{"unsafe"}, "low imports unsafe, reserved to tensor, comm"},
	}
	if faults := checkLayers(table, legal); faults != nil {
		t.Fatalf("the legal graph has faults: %v", faults)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			graph := map[string][]string{"low": legal["low"], "high": legal["high"]}
			graph[c.pkg] = c.imports
			if faults := checkLayers(table, graph); !slices.Contains(faults, c.want) {
				t.Errorf("faults %q lack %q", faults, c.want)
			}
		})
	}
	bad := []layer{{"a", "b", "", pure}, {"b", "", "", pure}}
	want := []string{"a lists b, which is not on an earlier line", "a lists b but no file imports it"}
	if diff := cmp.Diff(want, checkLayers(bad, map[string][]string{"a": nil, "b": nil})); diff != "" {
		t.Error(diff)
	}
}

// checkLayers returns every disagreement of the table with the imports of the packages.
func checkLayers(table []layer, graph map[string][]string) (faults []string) {
	lines := map[string]layer{}
	for _, l := range table {
		for name := range strings.FieldsSeq(l.imports) {
			if _, ok := lines[name]; !ok {
				faults = append(faults, fmt.Sprintf("%s lists %s, which is not on an earlier line", l.name, name))
			}
		}
		lines[l.name] = l
		if _, ok := graph[l.name]; !ok {
			faults = append(faults, "the table lists "+l.name+", which does not exist")
		}
	}
	for _, name := range sorted(graph) {
		l, ok := lines[name]
		if !ok {
			faults = append(faults, "package "+name+" is not in the table of layers")
			continue
		}
		faults = append(faults, l.check(graph[name])...)
	}
	return faults
}

// check returns the disagreements of one line with the imports of its package.
func (l layer) check(imports []string) (faults []string) {
	var allowed []string
	for name := range strings.FieldsSeq(l.imports) {
		allowed = append(allowed, "carve/"+name)
	}
	allowed = append(allowed, strings.Fields(l.modules)...)
	for _, imported := range imports {
		if owners, ok := reserved[imported]; ok && !slices.ContainsFunc(owners, l.within) {
			faults = append(faults, fmt.Sprintf("%s imports %s, reserved to %s", l.name, imported, strings.Join(owners, ", ")))
		}
		if l.kind == pure && slices.ContainsFunc(impure, func(p string) bool { return under(imported, p) }) {
			faults = append(faults, fmt.Sprintf("%s is pure and imports %s", l.name, imported))
		}
		if !standard(imported) && !slices.ContainsFunc(allowed, func(a string) bool { return covers(a, imported) }) {
			faults = append(faults, fmt.Sprintf("%s imports %s, which its line does not allow", l.name, imported))
		}
	}
	for _, a := range allowed {
		if !slices.ContainsFunc(imports, func(i string) bool { return covers(a, i) }) {
			faults = append(faults, fmt.Sprintf("%s lists %s but no file imports it", l.name, strings.TrimPrefix(a, "carve/")))
		}
	}
	return faults
}

// covers tells whether an allowed path covers an import: a package of ours itself only, a module with all below it.
func covers(allowed, imported string) bool {
	return allowed == imported || !strings.HasPrefix(allowed, "carve/") && under(imported, allowed)
}

// within tells whether the package of l is the named one or below it.
func (l layer) within(name string) bool { return under(l.name, name) }

// under tells whether an import path is the given one or below it.
func under(imported, parent string) bool {
	return imported == parent || strings.HasPrefix(imported, parent+"/")
}

// standard tells whether an import path belongs to the standard library: its first element has no dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".") && first != "carve"
}

// readImports returns, for every package folder under root, the import paths of its files without
// tests, sorted. Folders that the go command skips, and those of other modules, are left out.
func readImports(root string) (map[string][]string, error) {
	graph := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipFolder(root, file)
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		return addImports(graph, path.Dir(filepath.ToSlash(file)), file)
	})
	for name := range graph {
		slices.Sort(graph[name])
		graph[name] = slices.Compact(graph[name])
	}
	return graph, err
}

// skipFolder returns fs.SkipDir for the folders that hold no package of this module.
func skipFolder(root, folder string) error {
	base := filepath.Base(folder)
	if folder == root {
		return nil
	}
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if modules, _ := filepath.Glob(filepath.Join(folder, "go.mod")); len(modules) > 0 {
		return fs.SkipDir
	}
	return nil
}

// addImports adds what one file imports to its package.
func addImports(graph map[string][]string, name, file string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return err
	}
	imports := graph[name]
	for _, spec := range parsed.Imports {
		imports = append(imports, strings.Trim(spec.Path.Value, `"`))
	}
	graph[name] = imports
	return nil
}

// sorted returns the keys of a graph in order.
func sorted(graph map[string][]string) []string {
	names := make([]string, 0, len(graph))
	for name := range graph {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
