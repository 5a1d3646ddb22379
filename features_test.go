package carve_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// featureCounts is how many rows each group of docs/features.md has: S1 to S8, D1 to D10, and so on, in this order.
var featureCounts = []struct {
	group string
	rows  int
}{
	{"S", 8},
	{"D", 10},
	{"T", 6},
	{"P", 9},
	{"C", 5},
	{"E", 9},
	{"M", 6},
	{"X", 7},
	{"A", 14},
	{"V", 4},
	{"K", 11},
	{"I", 14},
	{"F", 11},
}

// feature is one row of docs/features.md.
type feature struct {
	id, state, command, tests, missing string
}

var featureRow = regexp.MustCompile(`(?m)^\|\s*([A-Z]\d+)\s*\|.*$`)

// parseFeatures reads the rows of every table whose first column is an id; a row with another number of columns is an error.
func parseFeatures(page string) ([]feature, error) {
	var rows []feature
	for _, line := range featureRow.FindAllString(page, -1) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 {
			return nil, fmt.Errorf("row %q has %d columns, want 6 (id, feature, state, command, test, missing)", line, len(cells))
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, feature{cells[0], cells[2], cells[3], cells[4], cells[5]})
	}
	return rows, nil
}

// checkFeatures returns what is wrong with rows, given the tests ("package.TestName") and the verbs of the program that exist.
func checkFeatures(rows []feature, tests, verbs map[string]bool) []string {
	var wrong []string
	report := func(f feature, format string, args ...any) {
		wrong = append(wrong, f.id+": "+fmt.Sprintf(format, args...))
	}
	for _, f := range rows {
		switch f.state {
		case "planned":
			continue
		case "partly":
			if f.missing == "" {
				report(f, "partly, but nothing is said to be missing")
			}
		case "works":
			if f.missing != "" {
				report(f, "works, but %q is missing", f.missing)
			}
		default:
			report(f, "state %q is none of planned, partly, works", f.state)
		}
		for _, problem := range append(checkCommand(f.command, verbs), checkTests(f.tests, tests)...) {
			report(f, "%s", problem)
		}
	}
	return wrong
}

// checkCommand accepts one or more commands in backticks that start with go, make, or carve and one of its verbs.
func checkCommand(cell string, verbs map[string]bool) []string {
	commands := quoted(cell)
	if len(commands) == 0 {
		return []string{"names no command in backticks"}
	}
	var wrong []string
	for _, command := range commands {
		switch words := strings.Fields(command); {
		case len(words) == 0:
			wrong = append(wrong, "has an empty command")
		case words[0] == "go" || words[0] == "make":
		case words[0] == "carve" && len(words) > 1 && verbs[words[1]]:
		default:
			wrong = append(wrong, fmt.Sprintf("command %q is no verb of carve, nor go or make", command))
		}
	}
	return wrong
}

func checkTests(cell string, tests map[string]bool) []string {
	names := quoted(cell)
	if len(names) == 0 {
		return []string{"names no test in backticks"}
	}
	var wrong []string
	for _, name := range names {
		if !tests[name] {
			wrong = append(wrong, fmt.Sprintf("no test %q in the tree", name))
		}
	}
	return wrong
}

// quoted returns what stands between backticks in a table's cell.
func quoted(cell string) []string {
	var out []string
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			out = append(out, strings.TrimSpace(part))
		}
	}
	return out
}

func TestFeatures(t *testing.T) {
	page, err := os.ReadFile("docs/features.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parseFeatures(string(page))
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, f := range rows {
		got = append(got, f.id)
	}
	for _, g := range featureCounts {
		for i := 1; i <= g.rows; i++ {
			want = append(want, g.group+strconv.Itoa(i))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids of docs/features.md (-want +got):\n%s", diff)
	}
	for _, wrong := range checkFeatures(rows, testsInTree(t), verbsInTree(t)) {
		t.Errorf("docs/features.md: %s", wrong)
	}
}

// TestFeaturesPlantedFaults holds that the check catches each way in which the page can lie.
func TestFeaturesPlantedFaults(t *testing.T) {
	tests, verbs := map[string]bool{"comm.TestRing": true}, map[string]bool{"train": true}
	for _, tc := range []struct {
		name, row, want string
	}{
		{"planned row says nothing", "| X1 | all | planned | | | |", ""},
		{"true row", "| X1 | all | works | `carve train` | `comm.TestRing` | |", ""},
		{"true part", "| X1 | all | partly | `make bench` | `comm.TestRing` | fp64 |", ""},
		{"unknown state", "| X1 | all | done | `carve train` | `comm.TestRing` | |", `X1: state "done" is none of planned, partly, works`},
		{"no such test", "| X1 | all | works | `carve train` | `comm.TestGone` | |", `X1: no test "comm.TestGone" in the tree`},
		{"no test", "| X1 | all | works | `carve train` | | |", "X1: names no test in backticks"},
		{"no command", "| X1 | all | works | | `comm.TestRing` | |", "X1: names no command in backticks"},
		{"no such verb", "| X1 | all | works | `carve fly` | `comm.TestRing` | |", `X1: command "carve fly" is no verb of carve, nor go or make`},
		{"part without a gap", "| X1 | all | partly | `carve train` | `comm.TestRing` | |", "X1: partly, but nothing is said to be missing"},
		{"whole with a gap", "| X1 | all | works | `carve train` | `comm.TestRing` | fp64 |", `X1: works, but "fp64" is missing`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rows, err := parseFeatures(tc.row)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(checkFeatures(rows, tests, verbs), "\n"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if _, err := parseFeatures("| X1 | all | works |"); err == nil {
		t.Error("a row with three columns is accepted")
	}
}

// testsInTree returns every test, benchmark, fuzz target and example of the module as "package.Name".
func testsInTree(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	name := regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)`)
	eachGoFile(t, ".", func(path string, file *ast.File) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && name.MatchString(fn.Name.Name) {
				tests[strings.TrimSuffix(file.Name.Name, "_test")+"."+fn.Name.Name] = true
			}
		}
	})
	return tests
}

// verbsInTree returns the first word of every string literal given to a field Use, or to newGroup, under cmd: the program's
// verbs.
func verbsInTree(t *testing.T) map[string]bool {
	t.Helper()
	verbs := map[string]bool{}
	eachGoFile(t, "cmd", func(_ string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if kv, ok := n.(*ast.KeyValueExpr); ok {
				if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Use" {
					if use, ok := kv.Value.(*ast.BasicLit); ok {
						verbs[firstWord(use.Value)] = true
					}
				}
			}
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
				maker, named := call.Fun.(*ast.Ident)
				if use, ok := call.Args[0].(*ast.BasicLit); ok && named && maker.Name == "newGroup" {
					verbs[firstWord(use.Value)] = true
				}
			}
			return true
		})
	})
	return verbs
}

// firstWord returns the first word of a Go string literal.
func firstWord(literal string) string {
	text, err := strconv.Unquote(literal)
	if err != nil {
		return ""
	}
	word, _, _ := strings.Cut(text, " ")
	return word
}

// eachGoFile parses every Go file below root, leaving out the folders that the go command leaves out; a root that is not there has none.
func eachGoFile(t *testing.T, root string, visit func(path string, file *ast.File)) {
	t.Helper()
	eachFile(t, root, ".go", func(path string) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		visit(path, file)
	})
}

// eachFile visits the files below root whose name ends in suffix, in lexical order, leaving out hidden, underscored and testdata folders.
func eachFile(t *testing.T, root, suffix string, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) && path == root {
				return fs.SkipAll
			}
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "runs") {
			return fs.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(name, suffix) {
			visit(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
