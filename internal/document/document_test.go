package document_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"carve/internal/document"
	"carve/unit"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// colour is an enumeration to decode.
type colour uint8

// everything has a variable for every codec.
type everything struct {
	whole    int
	least    int
	count    unit.Count
	seed     uint64
	real     float64
	flag     bool
	text     string
	size     unit.Bytes
	colour   colour
	list     []int
	optional float64
}

// codec binds its keys.
func (e *everything) codec() document.Codec {
	return document.Map(
		document.Field{Key: "whole", Codec: document.Int(&e.whole)},
		document.Field{Key: "least", Codec: document.AtLeast(2, &e.least)},
		document.Field{Key: "count", Codec: document.Count(&e.count)},
		document.Field{Key: "seed", Codec: document.Seed(&e.seed)},
		document.Field{Key: "real", Codec: document.Float(&e.real)},
		document.Field{Key: "flag", Codec: document.Flag(&e.flag)},
		document.Field{Key: "text", Codec: document.Text(&e.text)},
		document.Field{Key: "size", Codec: document.Size(&e.size)},
		document.Field{Key: "colour", Codec: document.Enum(&e.colour, "red", "green", "blue")},
		document.Field{Key: "list", Codec: document.Slice(&e.list, document.Int)},
		document.Field{Key: "optional", Codec: document.When(func() bool { return e.optional != 0 }, document.Nullable(document.Float(&e.optional)))},
	)
}

// decode reads JSON into a value with every codec.
func decode(text string) (everything, error) {
	var e everything
	n, err := document.ParseJSON([]byte(text))
	if err != nil {
		return e, err
	}
	return e, document.Decode("test", n, e.codec())
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := everything{
			whole:    rapid.IntRange(-1<<53, 1<<53).Draw(t, "whole"),
			least:    rapid.IntRange(2, 9).Draw(t, "least"),
			count:    unit.Count(rapid.Int64Range(-1e6, 1e6).Draw(t, "count")) * 1_000_000_000,
			seed:     rapid.Uint64().Draw(t, "seed"),
			real:     rapid.Float64().Draw(t, "real"),
			flag:     rapid.Bool().Draw(t, "flag"),
			text:     rapid.String().Draw(t, "text"),
			size:     unit.Bytes(rapid.Int64Range(0, math.MaxInt64).Draw(t, "size")),
			colour:   colour(rapid.IntRange(0, 2).Draw(t, "colour")),
			list:     rapid.SliceOfN(rapid.IntRange(-9, 9), 1, 4).Draw(t, "list"),
			optional: rapid.SampledFrom([]float64{0, 1.5}).Draw(t, "optional"),
		}
		if math.Abs(float64(want.count)) > 1<<53 {
			want.count = 0
		}
		text := document.WriteJSON(want.codec().Encode())
		if !json.Valid(text) {
			t.Fatalf("not JSON: %s", text)
		}
		got, err := decode(string(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(everything{})); diff != "" {
			t.Fatalf("%s\n%s", diff, text)
		}
	})
}

func TestFaults(t *testing.T) {
	cases := []struct{ text, want string }{
		{`{"whole": 1.5}`, "test: line 1, column 11: whole: want a whole number, have 1.5"},
		{`{"whole": 1e3}`, ""},
		{`{"whole": 1e17}`, "test: line 1, column 11: whole: want a whole number of at most 53 bits, have 1e17"},
		{`{"whole": 9007199254740993}`, "test: line 1, column 11: whole: want a whole number of at most 53 bits, have 9007199254740993"},
		{`{"whole": null}`, "test: line 1, column 11: whole: want a whole number, have nothing"},
		{`{"least": 1}`, "test: line 1, column 11: least: want a whole number from 2 up, have 1"},
		{`{"seed": -1}`, "test: line 1, column 10: seed: want a whole number from 0 to 2^64-1, have -1"},
		{`{"seed": "1"}`, `test: line 1, column 10: seed: want a whole number from 0 to 2^64-1, have the text "1"`},
		{`{"real": 1e999}`, "test: line 1, column 10: real: want a finite number, have 1e999"},
		{`{"real": "1"}`, `test: line 1, column 10: real: want a finite number, have the text "1"`},
		{`{"flag": 1}`, "test: line 1, column 10: flag: want true or false, have 1"},
		{`{"text": true}`, "test: line 1, column 10: text: want text, have true"},
		{`{"size": "25 mib"}`, `test: line 1, column 10: size: want a size such as 25MiB, have the text "25 mib"`},
		{`{"size": [1]}`, "test: line 1, column 10: size: want a size such as 25MiB, have a list"},
		{`{"colour": "gren"}`, `test: line 1, column 12: colour: unknown value "gren"; did you mean green?`},
		{`{"colour": {}}`, "test: line 1, column 12: colour: want red, green or blue, have a mapping"},
		{`{"list": {"a": 1}}`, "test: line 1, column 10: list: want a list, have a mapping"},
		{`{"list": [1, "x"]}`, `test: line 1, column 14: list.1: want a whole number, have the text "x"`},
		{`{"optional": null}`, ""},
		{"{\n  \"whoel\": 1\n}", "test: line 2, column 3: whoel: unknown key; did you mean whole?"},
		{`{"whole": 1, "whole": 2}`, "test: line 1, column 14: whole: given twice; keep one"},
		{`[]`, "test: line 1, column 1: want a mapping with whole, least, count, seed, real, flag, text, size, colour, list or optional, have a list"},
	}
	for _, c := range cases {
		got := ""
		if _, err := decode(c.text); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.text, got, c.want)
		}
	}
}

// TestFaultsAreBounded checks that a hostile document gives a short error.
func TestFaultsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 5000)
	var keys []string
	for range 1000 {
		keys = append(keys, `"`+long+`": 1`)
	}
	_, err := decode("{" + strings.Join(keys[:100], ",") + "}")
	if err == nil {
		t.Fatal("unknown keys are accepted")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != document.MaxFaults+1 || lines[document.MaxFaults] != "test: 80 more like these" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
	if len(err.Error()) > 300*len(lines) {
		t.Errorf("%d bytes of errors", len(err.Error()))
	}
}

func TestParseJSONRefuses(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"empty", " \n", "is empty"},
		{"too long", strings.Repeat(" ", document.MaxBytes) + "1", "is 1048577 bytes long; at most 1048576 are read"},
		{"not text", "\"\xff\"", "is not UTF-8 text"},
		{"deep", strings.Repeat("[", 33) + strings.Repeat("]", 33), "nests 33 deep; at most 32 is read"},
		{"cut off", "{\n \"a\": [1,", "line 2, column 9: not JSON: unexpected end of JSON input"},
		{"trailing", "{} {}", "line 1, column 4: not JSON: invalid character '{' after top-level value"},
		{"comma", "[1,]", "line 1, column 4: not JSON: invalid character ']' looking for beginning of value"},
	}
	for _, c := range cases {
		if _, err := document.ParseJSON([]byte(c.text)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if _, err := document.ParseJSON([]byte(`["\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["]`)); err != nil {
		t.Errorf("brackets in text count: %v", err)
	}
}

// TestPlaces checks line and column of every kind of value.
func TestPlaces(t *testing.T) {
	n, err := document.ParseJSON([]byte("{\"a\" : 1,\n  \"b\": [true,\n null, {\"c\":\"d\"}]}"))
	if err != nil {
		t.Fatal(err)
	}
	b := n.Get("b")
	got := [][2]int{{n.Line, n.Column}, {n.Get("a").Line, n.Get("a").Column}, {b.Line, b.Column}}
	for _, item := range b.Items {
		got = append(got, [2]int{item.Line, item.Column})
	}
	want := [][2]int{{1, 1}, {1, 8}, {2, 8}, {2, 9}, {3, 2}, {3, 8}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n.Get("z") != nil {
		t.Error("a key that is not there has a value")
	}
}

func TestFormatFloat(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 0.95: "0.95", 3e-4: "3e-4", 1e-8: "1e-8", 1.5e-5: "1.5e-5", 989e12: "9.89e14",
		-2.5: "-2.5", 123456: "123456", 1e9: "1e9", 1e100: "1e100", math.Inf(1): "+Inf",
	} {
		if got := document.FormatFloat(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
	if got := document.FormatFloat(math.NaN()); got != "NaN" {
		t.Errorf("NaN is written %s", got)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"dgx-a100", "dgx-a100-40gb", "dgx-h100", "dgx-h200", "llama-3.1-8b", "warmup", "tp"}
	cases := []struct{ name, want string }{
		{"dgx_H100", "dgx-h100"},
		{"h200", "dgx-h200"},
		{"a100", "dgx-a100"},
		{"lama-3.1-8B", "llama-3.1-8b"},
		{"llama3.1-8b", "llama-3.1-8b"},
		{"wramup", "warmup"},
		{"warmpup", "warmup"},
		{"pt", "tp"},
		{"x", ""},
		{"frobnicate", ""},
		{"", ""},
		{strings.Repeat("dgx", 100), ""},
	}
	for _, c := range cases {
		got, ok := document.Nearest(c.name, known)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("nearest to %q is %q, want %q", c.name, got, c.want)
		}
	}
}

// TestNearestProperty checks that a slip in a known name is always mended.
func TestNearestProperty(t *testing.T) {
	known := []string{"sequence", "global_batch", "tokenizer", "validation"}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(known).Draw(t, "name")
		i := rapid.IntRange(0, len(name)-1).Draw(t, "at")
		slips := []string{name[:i] + name[i+1:], name[:i] + "x" + name[i:], name[:i] + "x" + name[i+1:]}
		if i > 0 {
			slips = append(slips, name[:i-1]+name[i:i+1]+name[i-1:i]+name[i+1:])
		}
		slip := rapid.SampledFrom(slips).Draw(t, "slip")
		if got, ok := document.Nearest(slip, known); !ok || got != name {
			t.Fatalf("nearest to %q is %q, want %q", slip, got, name)
		}
	})
}

func TestMisspelt(t *testing.T) {
	known := []string{"num_hidden_layers", "rope_theta", "head_dim"}
	cases := []struct {
		name string
		want bool
	}{
		{"num_hiden_layers", true},
		{"rope_thetas", true},
		{"rope_type", false},
		{"dim", false},
		{"my_key", false},
	}
	for _, c := range cases {
		if _, got := document.Misspelt(c.name, known); got != c.want {
			t.Errorf("%q misspelt: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWords(t *testing.T) {
	if got := document.Either([]string{"a"}) + document.Either(nil) + document.Either([]string{"a", "b", "c"}); got != "aa, b or c" {
		t.Errorf("lists read %q", got)
	}
	if got := document.Name(colour(7), []string{"red"}); got != "7" {
		t.Errorf("a value without a name is %q", got)
	}
	if got := document.Clip("a\xff" + strings.Repeat("é", 100)); len(got) > 64 || !strings.HasPrefix(got, "a?é") {
		t.Errorf("clipped to %q", got)
	}
	for kind, want := range map[document.Kind]string{
		document.Null: "nothing", document.Bool: "true or false", document.Number: "a number", document.String: "text",
		document.List: "a list", document.Mapping: "a mapping", 99: "an unknown kind",
	} {
		if kind.String() != want {
			t.Errorf("kind %d is %q", kind, kind)
		}
	}
}

func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{`{"a": [1, 2.5e3, "x", null, true]}`, "", "[", `"\ud800"`, "[[[[", `{"a":1,"a":2}`, "1 2"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := document.ParseJSON(data)
		if (err == nil) != json.Valid(data) && err == nil {
			t.Fatalf("accepts what is not JSON: %q", data)
		}
		if err != nil {
			return
		}
		again, err := document.ParseJSON(document.WriteJSON(n))
		if err != nil {
			t.Fatal(err)
		}
		ignore := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Line" || p.Last().String() == ".Column" }, cmp.Ignore())
		if diff := cmp.Diff(n, again, ignore); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestPlace checks that keys are found by their path.
func TestPlace(t *testing.T) {
	n, err := document.ParseJSON([]byte("{\"a\": 1,\n \"b\": {\"c\": [5,\n  {\"d\": 2}]}}"))
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		path         string
		line, column int
		ok           bool
	}{
		{"a", 1, 2, true},
		{"b.c", 2, 8, true},
		{"b.c.0", 2, 14, true},
		{"b.c.1.d", 3, 4, true},
		{"", 0, 0, false},
		{"z", 0, 0, false},
		{"a.b", 0, 0, false},
		{"b.c.2", 0, 0, false},
		{"b.c.-1", 0, 0, false},
		{"b.0", 0, 0, false},
	}
	for _, c := range cases {
		line, column, ok := n.Place(c.path)
		if ok != c.ok || line != c.line || column != c.column {
			t.Errorf("%q is at line %d, column %d (%v), want %d, %d (%v)", c.path, line, column, ok, c.line, c.column, c.ok)
		}
	}
}
