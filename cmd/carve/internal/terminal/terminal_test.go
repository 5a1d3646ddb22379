package terminal

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestBlock(t *testing.T) {
	var out bytes.Buffer
	b := &Block{Writer: &out, Width: func() int { return 8 }}
	b.Draw("one", "a line that is too long")
	b.Draw("two")
	b.Print("above")
	b.Draw("three")
	b.Keep()
	b.Draw("four")
	want := "one\x1b[K\na line…\x1b[K\n\x1b[J" +
		"\x1b[2A\rtwo\x1b[K\n\x1b[J" +
		"\x1b[1A\r\x1b[Jabove\n" +
		"three\x1b[K\n\x1b[J" +
		"four\x1b[K\n\x1b[J"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWidthOfAFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, ok := Width(f); ok {
		t.Error("a file is taken for a terminal")
	}
	if _, ok := Width(&bytes.Buffer{}); ok {
		t.Error("a buffer is taken for a terminal")
	}
}

func TestBarAndCurve(t *testing.T) {
	for _, tc := range []struct{ name, got, want string }{
		{"empty", Bar(0, 4), "░░░░"},
		{"half", Bar(0.5, 4), "██░░"},
		{"a bit", Bar(0.28, 4), "█▏░░"},
		{"full", Bar(1.5, 4), "████"},
		{"not a number", Bar(math.NaN(), 2), "░░"},
		{"curve", Curve([]float64{8, 4, 2, 1}, 10), "█▄▂▁"},
		{"flat", Curve([]float64{3, 3}, 10), "▁▁"},
		{"gap", Curve([]float64{0, math.NaN(), 7}, 10), "▁ █"},
		{"averaged", Curve([]float64{0, 2, 8, 8}, 2), "▁█"},
		{"nothing", Curve(nil, 3), ""},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, tc.got, tc.want)
		}
	}
}

func TestTable(t *testing.T) {
	got := Table([]string{"name", " size"}, [][]string{{"a", "1"}, {"longer", "12,345"}})
	want := "name      size\na            1\nlonger  12,345\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Table([]string{"", " "}, [][]string{{"a", "1"}}); got != "a  1\n" {
		t.Errorf("without headings: %q", got)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}

// TestNeverWider holds that no drawing is wider than asked for, whatever the values.
func TestNeverWider(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(0, 50).Draw(t, "columns")
		values := rapid.SliceOf(rapid.Float64()).Draw(t, "values")
		line := rapid.String().Draw(t, "line")
		for name, got := range map[string]string{
			"bar":   Bar(rapid.Float64().Draw(t, "part"), columns),
			"curve": Curve(values, columns),
			"cut":   Cut(strings.ToValidUTF8(line, "?"), columns),
		} {
			if n := utf8.RuneCountInString(got); n > columns {
				t.Fatalf("%s of %d columns has %d: %q", name, columns, n, got)
			}
		}
	})
}

// TestCurveOfExtremes plots values whose difference is infinite.
func TestCurveOfExtremes(t *testing.T) {
	if got := Curve([]float64{math.MaxFloat64, -math.MaxFloat64, 0}, 3); got != "█▁▅" {
		t.Errorf("got %q", got)
	}
}
