package token

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// words cuts text as s does.
func words(s *splitter, text string) (out []string) {
	for i := 0; i < len(text); {
		end := s.next([]byte(text), i)
		out = append(out, text[i:end])
		i = end
	}
	return out
}

func TestSplitterCases(t *testing.T) {
	cases := []struct {
		name    string
		pattern Pattern
		text    string
		want    string // words between bars
	}{
		{"words keep a leading space", GPT2, "Hello world", "Hello| world"},
		{"only the last blank goes with a word", GPT2, "a   b", "a|  | b"},
		{"a tab does not", GPT2, "\t\tx", "\t|\t|x"},
		{"contraction", GPT2, "it's we'll I'D", "it|'s| we|'ll| I|'|D"},
		{"contraction in any case", Llama3, "it'S we'LL I'ſa", "it|'S| we|'LL| I|'ſ|a"},
		{"contraction before a letter run", Llama3, "'sun", "'s|un"},
		{"quote before a word", Llama3, "'hello'", "'hello|'"},
		{"numbers by three", Llama3, "x 12345", "x| |123|45"},
		{"numbers by one", Qwen2, "1234", "1|2|3|4"},
		{"numbers whole", GPT2, " 12345", " 12345"},
		{"symbol sticks to a word", Llama3, "fmt.Println(x)", "fmt|.Println|(x|)"},
		{"punctuation takes its newlines", Llama3, "{\n\n\treturn", "{\n\n|\treturn"},
		{"code", Llama3, "if x {\n\t\ty()\n\t}\n", "if| x| {\n|\t|\ty|()\n|\t|}\n"},
		{"blank lines end at the last newline", Llama3, "a\n  \n  b", "a|\n  \n| | b"},
		{"trailing blanks", Llama3, "a   ", "a|   "},
		{"no-break space sticks to a word", Llama3, "a\u00a0b", "a|\u00a0b"},
		{"letters of any script", Llama3, "日本語 тест", "日本語| тест"},
		{"emoji", Llama3, " 👍👍ok", " 👍👍|ok"},
		{"invalid bytes are symbols", Llama3, "a\xff\xfeb", "a|\xff\xfe|b"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(words(newSplitter(c.pattern), c.text), "|"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestClassesFollowUnicode(t *testing.T) {
	s := newSplitter(Llama3)
	for r := range s.class {
		if got, want := s.class[r], classOf(rune(r)); got != want {
			t.Errorf("U+%04X has class %d, want %d", r, got, want)
		}
	}
}

// reference is a pattern as published, run by a regular-expression engine.
type reference struct{ expr *regexp2.Regexp }

func newReference(t testing.TB, p Pattern) reference {
	// The engine folds case by lower-casing, so it must be told of ſ, which
	// Unicode's case folding equates with s.
	pattern := strings.Replace(p.Regex(), "(?i:'s|", "(?i:'[sſ]|", 1)
	expr, err := regexp2.Compile(pattern, regexp2.None)
	if err != nil {
		t.Fatal(err)
	}
	return reference{expr}
}

func (r reference) words(t rapid.TB, text string) (out []string) {
	runes := []rune(text) // an invalid byte is one U+FFFD
	byteAt := make([]int, 0, len(runes)+1)
	for i := 0; i < len(text); {
		byteAt = append(byteAt, i)
		_, w := utf8.DecodeRuneInString(text[i:])
		i += w
	}
	byteAt = append(byteAt, len(text))
	m, err := r.expr.FindRunesMatch(runes)
	for ; m != nil && err == nil; m, err = r.expr.FindNextMatch(m) {
		out = append(out, text[byteAt[m.Index]:byteAt[m.Index+m.Length]])
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// genText draws text that is rich in what patterns look at.
func genText() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			" ", "  ", "\t", "\n", "\r\n", "\r", "\v", "\u0085", "\u00a0", "\u2028", "\u3000", "\u200b", "\ufeff",
			"'", "'s", "'S", "'re", "'LL", "'vE", "'ſ", "'m", "'d", "s", "ſ",
			"a", "Z", "é", "日本", "ß", "ǅ", "ª", "ʰ", "0", "12", "345", "٣", "²", "Ⅷ", "½", "㊿",
			".", "(", "_", "\"", "👍🏽", "e\u0301", "\u20ac", "𝒳", "𝟘", "\x00", "\x7f", "\xff", "\xc3", "\xe2\x82", "\xed\xa0\x80",
		}),
		rapid.StringN(0, 3, -1),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 3), func(b []byte) string { return string(b) }),
	)
	return rapid.Map(rapid.SliceOfN(piece, 0, 24), func(p []string) string { return strings.Join(p, "") })
}

func TestSplitterMeansThePattern(t *testing.T) {
	for p := range patternCount {
		t.Run(p.String(), func(t *testing.T) {
			split, ref := newSplitter(p), newReference(t, p)
			rapid.Check(t, func(t *rapid.T) {
				text := genText().Draw(t, "text")
				if diff := cmp.Diff(ref.words(t, text), words(split, text)); diff != "" {
					t.Fatalf("%q: regexp -, splitter +\n%s", text, diff)
				}
			})
		})
	}
}

// TestSplitterFaultIsSeen plants a wrong limit of digits.
func TestSplitterFaultIsSeen(t *testing.T) {
	split, ref := newSplitter(Llama3), newReference(t, Llama3)
	split.digits = 4
	if text := "12345"; cmp.Equal(ref.words(t, text), words(split, text)) {
		t.Error("the comparison misses words of four digits")
	}
}

func TestSafeCut(t *testing.T) {
	cases := []struct {
		name, text string
		want       int
	}{
		{"after the last safe newline", "ab\ncd\nef", 6},
		{"newline at the end", "ab\ncd\n", 3},
		{"indented line", "ab\ncd {\n\tx", 3},
		{"blank line", "ab\n\ncd", 0},
		{"no newline", "abcd", 0},
		{"nothing", "", 0},
		{"line without text before it", "\nab", 0},
		{"not ASCII", "ab\né", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := SafeCut([]byte(c.text)); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestSafeCutChangesNoWord(t *testing.T) {
	for p := range patternCount {
		split := newSplitter(p)
		rapid.Check(t, func(t *rapid.T) {
			text := genText().Draw(t, "head") + rapid.SampledFrom([]string{"a\nb", "}\n}", "1\n2", ")\n'S"}).Draw(t, "cut") + genText().Draw(t, "tail")
			at := SafeCut([]byte(text))
			if at == 0 {
				t.Fatalf("no cut found in %q", text)
			}
			parts := append(words(split, text[:at]), words(split, text[at:])...)
			if diff := cmp.Diff(words(split, text), parts); diff != "" {
				t.Fatalf("%v: %q cut at %d: whole -, parts +\n%s", p, text, at, diff)
			}
		})
	}
}
