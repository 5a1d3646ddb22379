package explain

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// keysOf adds the JSON keys of a type and of the types inside of it.
func keysOf(t reflect.Type, keys map[string]bool) {
	switch t.Kind() { //nolint:exhaustive // the other kinds have no keys inside
	case reflect.Pointer, reflect.Slice:
		keysOf(t.Elem(), keys)
	case reflect.Struct:
		for f := range t.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				keys[name] = true
			}
			keysOf(f.Type, keys)
		}
	}
}

// TestDocumentedKeys holds the table of docs/explain.md to the keys that there are, both ways.
func TestDocumentedKeys(t *testing.T) {
	page, err := os.ReadFile("../docs/explain.md")
	if err != nil {
		t.Fatal(err)
	}
	keys, documented := map[string]bool{}, map[string]bool{}
	keysOf(reflect.TypeFor[Report](), keys)
	_, table, _ := strings.Cut(string(page), "## JSON")
	for line := range strings.SplitSeq(table, "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[2], -1) {
				documented[m[1]] = true
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if !documented[k] {
			t.Errorf("key %q is not documented", k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(documented)) {
		if !keys[k] {
			t.Errorf("documented key %q does not exist", k)
		}
	}
}

// TestJSON holds that lists are lists also when they are empty, and that the same plan gives the same bytes.
func TestJSON(t *testing.T) {
	one, err := json.Marshal(explain(t, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(one), "null") {
		t.Errorf("a list is null in %s", one)
	}
	again, err := json.Marshal(explain(t, "{}"))
	if err != nil || string(again) != string(one) {
		t.Errorf("another time it is another text: %v", err)
	}
}
