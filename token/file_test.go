package token

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// saved is b's file.
func saved(t testing.TB, b *BPE) string {
	t.Helper()
	var out bytes.Buffer
	if err := b.Save(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestSaveLoad(t *testing.T) {
	sample := readFile(t, "testdata/sample.txt")
	for p := range patternCount {
		counts := count(t, p, sample)
		want, err := Train(t.Context(), counts, TrainOptions{VocabSize: 400, Special: []string{"<|pad|>", EndOfTextName, "<｜日本｜>"}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Load(strings.NewReader(saved(t, want)))
		if err != nil {
			t.Fatal(err)
		}
		if got.Hash() != want.Hash() || saved(t, got) != saved(t, want) {
			t.Errorf("%v: the file does not give the same tokenizer back", p)
		}
		if diff := cmp.Diff(want.Special(), got.Special()); diff != "" {
			t.Error(diff)
		}
		if !slices.Equal(got.Encode(nil, []byte(sample)), want.Encode(nil, []byte(sample))) {
			t.Errorf("%v: the loaded tokenizer encodes differently", p)
		}
	}
}

// TestGoldenFile keeps the form of the file as other programs read it.
func TestGoldenFile(t *testing.T) {
	got := saved(t, train(t, Llama3, 6, "x := y\ny := x\n x := é"))
	name := filepath.Join("testdata", "tiny.tokenizer.json")
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(readFile(t, name), got); diff != "" {
		t.Error(diff)
	}
}

// edit changes a valid file: it gets the decoded JSON and returns what to write.
type edit func(root map[string]any) any

// edited is the golden file after e.
func edited(t testing.TB, e edit) string {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal([]byte(readFile(t, "testdata/tiny.tokenizer.json")), &root); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(e(root))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// setAt returns an edit of the value at path, whose parts are keys or, in an
// array, '0' to '9'.
func setAt(value any, path ...string) edit {
	return func(root map[string]any) any {
		var at any = root
		for _, key := range path[:len(path)-1] {
			switch node := at.(type) {
			case map[string]any:
				at = node[key]
			case []any:
				at = node[key[0]-'0']
			}
		}
		last := path[len(path)-1]
		switch node := at.(type) {
		case map[string]any:
			node[last] = value
		case []any:
			node[last[0]-'0'] = value
		}
		return root
	}
}

func TestLoadAccepts(t *testing.T) {
	want, err := LoadFile("testdata/tiny.tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	pairs := func(root map[string]any) any {
		model := root["model"].(map[string]any)
		var merges []any
		for _, m := range model["merges"].([]any) {
			left, right, _ := strings.Cut(m.(string), " ")
			merges = append(merges, []any{left, right})
		}
		model["merges"] = merges
		return root
	}
	cases := map[string]edit{
		"merges as pairs":       pairs,
		"unknown token named":   setAt("<unk>", "model", "unk_token"),
		"no dropout":            setAt(0, "model", "dropout"),
		"template":              setAt(map[string]any{"type": "TemplateProcessing", "single": []any{}}, "post_processor"),
		"no decoder":            setAt(nil, "decoder"),
		"an older file's model": func(root map[string]any) any { delete(root["model"].(map[string]any), "type"); return root },
	}
	for name, e := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Load(strings.NewReader(edited(t, e)))
			if err != nil {
				t.Fatal(err)
			}
			if got.Hash() != want.Hash() {
				t.Error("another tokenizer")
			}
		})
	}
	gpt2, err := Load(strings.NewReader(edited(t, setAt(map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true}, "pre_tokenizer"))))
	if err != nil || gpt2.Pattern() != GPT2 {
		t.Errorf("ByteLevel alone: %v, error %v", gpt2, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	cases := []struct {
		name string
		edit edit
		want string
	}{
		{"unknown key", setAt(1, "model", "surprise"), `json: unknown field "surprise"`},
		{"not an object", func(map[string]any) any { return []int{1} }, "json: cannot unmarshal array"},
		{"model type", setAt("Unigram", "model", "type"), `model type "Unigram" is not supported; use a BPE`},
		{"normalizer", setAt(map[string]any{"type": "NFC"}, "normalizer"), "a normalizer is not supported"},
		{"truncation", setAt(map[string]any{}, "truncation"), "truncation and padding are not supported"},
		{"dropout", setAt(0.1, "model", "dropout"), "model.dropout makes ids random"},
		{"byte fallback", setAt(true, "model", "byte_fallback"), "model.byte_fallback is not supported"},
		{"ignore merges", setAt(true, "model", "ignore_merges"), "model.ignore_merges is not supported"},
		{"suffix", setAt("</w>", "model", "end_of_word_suffix"), "end_of_word_suffix are not supported"},
		{"decoder", setAt(map[string]any{"type": "WordPiece"}, "decoder"), `decoder "WordPiece" is not supported`},
		{"no pre-tokenizer", setAt(nil, "pre_tokenizer"), "pre_tokenizer is neither ByteLevel nor"},
		{"other pre-tokenizer", setAt(map[string]any{"type": "Whitespace"}, "pre_tokenizer"), "pre_tokenizer is neither ByteLevel nor"},
		{"pattern", setAt(`\w+`, "pre_tokenizer", "pretokenizers", "0", "pattern", "Regex"), `split pattern "\\w+" is not supported`},
		{"behavior", setAt("Removed", "pre_tokenizer", "pretokenizers", "0", "behavior"), "pre_tokenizer Split needs"},
		{"inverted", setAt(true, "pre_tokenizer", "pretokenizers", "0", "invert"), "pre_tokenizer Split needs"},
		{"two patterns", setAt(true, "pre_tokenizer", "pretokenizers", "1", "use_regex"), "ByteLevel needs use_regex false behind a Split"},
		{"prefix space", setAt(true, "pre_tokenizer", "pretokenizers", "1", "add_prefix_space"), "add_prefix_space is not supported"},
		{"id twice", setAt(5, "model", "vocab", "A"), "id 5 belongs to both"},
		{"id missing", setAt(5000, "model", "vocab", "A"), "id 65 is missing among 260 tokens"},
		{"negative id", setAt(-1, "model", "vocab", "A"), "id 65 is missing among 260 tokens"},
		{"huge id", setAt(1<<40, "model", "vocab", "A"), "json: cannot unmarshal number"},
		{"not byte-level", setAt(260, "model", "vocab", "▁the"), "which stands for no byte"},
		{"empty token", setAt(260, "model", "vocab", ""), "token 260 is empty"},
		{"byte missing", func(root map[string]any) any {
			vocab := root["model"].(map[string]any)["vocab"].(map[string]any)
			vocab["AAAA"] = vocab["A"]
			delete(vocab, "A")
			return root
		}, "byte 0x41 has no token"},
		{"merge of strangers", setAt("A B", "model", "merges", "0"), "the two and what they join into must be in the vocabulary"},
		{"merge without space", setAt("AB", "model", "merges", "0"), `merge "AB" is not two tokens`},
		{"merge of three", setAt([]any{"a", "b", "c"}, "model", "merges", "0"), `has 3 parts; it needs 2`},
		{"merge of numbers", setAt(7, "model", "merges", "0"), "json: cannot unmarshal number"},
		{"merge twice", setAt("Ġ :", "model", "merges", "1"), "merge 1 repeats merge 0"},
		{"added token in use", setAt(0, "added_tokens", "0", "id"), `added token "<|endoftext|>" has id 0, which is taken`},
		{"added token in text", setAt(false, "added_tokens", "0", "special"), "is not special; such tokens are not supported"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(strings.NewReader(edited(t, c.edit)))
			if err == nil || !strings.HasPrefix(err.Error(), "token: tokenizer.json: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

func TestLoadRefusesBrokenFiles(t *testing.T) {
	whole := readFile(t, "testdata/tiny.tokenizer.json")
	for n := 0; n < len(whole)-2; n += 37 {
		if _, err := Load(strings.NewReader(whole[:n])); err == nil {
			t.Fatalf("the first %d of %d bytes load", n, len(whole))
		}
	}
	if _, err := Load(strings.NewReader(whole + "{}")); err == nil || !strings.Contains(err.Error(), "more data after the end") {
		t.Errorf("data after the end: %v", err)
	}
	if _, err := load(strings.NewReader(whole), int64(len(whole)-1)); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("file over the limit: %v", err)
	}
	if _, err := LoadFile("testdata/absent.json"); err == nil || !strings.Contains(err.Error(), "absent.json: no such file or directory; name an existing") {
		t.Errorf("missing file: %v", err)
	}
	if _, err := LoadFile("testdata/sample.txt"); err == nil || !strings.HasPrefix(err.Error(), "token: testdata/sample.txt: invalid character") {
		t.Errorf("text file: %v", err)
	}
}

func TestSaveRefusesAmbiguousNames(t *testing.T) {
	b, err := Train(t.Context(), count(t, GPT2, "x"), TrainOptions{VocabSize: 257, Special: []string{"Ġ"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Save(io.Discard); err == nil || !strings.Contains(err.Error(), "named like the spelling of an ordinary one") {
		t.Errorf("error %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(readFile(f, "testdata/tiny.tokenizer.json")))
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]},"pre_tokenizer":{"type":"ByteLevel"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Load(bytes.NewReader(data))
		if err != nil {
			return
		}
		ids := b.Encode(nil, data)
		if back, err := b.Decode(nil, ids); err != nil || !bytes.Equal(back, data) {
			t.Fatalf("a loaded tokenizer loses text, error %v", err)
		}
		var file bytes.Buffer
		if b.Save(&file) != nil {
			return // a special token named like the spelling of another
		}
		again, err := Load(&file)
		if err != nil || again.Hash() != b.Hash() {
			t.Fatalf("a loaded tokenizer does not survive its own file, error %v", err)
		}
	})
}

func FuzzEncode(f *testing.F) {
	b := train(f, Llama3, 200, readFile(f, "testdata/sample.txt"))
	for _, text := range []string{"", "a", "func (s *state) step(k int) {\n", strings.Repeat("ab", 200), "\xff\xfe é👍", "'s 1234\r\n\r\n  x"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ids := b.Encode(nil, text)
		if back, err := b.Decode(nil, ids); err != nil || !bytes.Equal(back, text) {
			t.Fatalf("%q came back as %q, error %v", text, back, err)
		}
		if len(text) < 300 && !slices.Equal(ids, twinEncode(b, text)) {
			t.Fatalf("%q: %d, the twin's %d", text, ids, twinEncode(b, text))
		}
	})
}
