package data

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carve/token"
)

func TestLearn(t *testing.T) {
	root := tree(t, map[string]string{
		"a.txt": strings.Repeat("the lower layer\n", 20), "b.jsonl": `{"text":"the lowest layer"}`, "c.bin": "\x00\x01",
	})
	cache := t.TempDir()
	var stages []Stage
	learn := func(size int) *token.BPE {
		t.Helper()
		stages = nil
		b, err := Learn(t.Context(), open(t, root, SourceOptions{}), LearnOptions{Cache: cache, VocabSize: size, Progress: func(p Progress) {
			if len(stages) == 0 || stages[len(stages)-1] != p.Stage {
				stages = append(stages, p.Stage)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := learn(270)
	if len(stages) != 2 || stages[0] != Counting || stages[1] != Merging {
		t.Errorf("stages %v", stages)
	}
	counts, err := token.NewCounter(token.Llama3)
	if err != nil {
		t.Fatal(err)
	}
	counts.Add([]byte(strings.Repeat("the lower layer\n", 20)))
	counts.Add([]byte("the lowest layer"))
	twin, err := token.Train(t.Context(), counts, token.TrainOptions{VocabSize: 270})
	if err != nil || twin.Hash() != first.Hash() {
		t.Errorf("not the tokenizer of the text, error %v", err)
	}
	if again := learn(270); again.Hash() != first.Hash() || stages != nil {
		t.Errorf("not from the cache: stages %v", stages)
	}
	if other := learn(265); other.VocabSize() != 265 {
		t.Errorf("%d tokens, want 265", other.VocabSize())
	}
	files, err := filepath.Glob(filepath.Join(cache, "tokenizer-*", "tokenizer.json"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.Truncate(f, 100); err != nil {
			t.Fatal(err)
		}
	}
	if again := learn(270); again.Hash() != first.Hash() || stages == nil {
		t.Error("a damaged file is not made anew")
	}
}

func TestLearnErrors(t *testing.T) {
	root := tree(t, map[string]string{"a.txt": "x", "b.jsonl": "no", "bin/a": "\x00", "bin/b": "\x00"})
	text := open(t, filepath.Join(root, "a.txt"), SourceOptions{})
	if _, err := Learn(t.Context(), open(t, filepath.Join(root, "bin"), SourceOptions{}), LearnOptions{Cache: t.TempDir(), VocabSize: 300}); !errors.Is(err, ErrNoText) {
		t.Error(err)
	}
	if _, err := Learn(t.Context(), open(t, filepath.Join(root, "b.jsonl"), SourceOptions{}), LearnOptions{Cache: t.TempDir(), VocabSize: 300}); err == nil || !strings.Contains(err.Error(), "b.jsonl:1: invalid JSON") {
		t.Error(err)
	}
	if _, err := Learn(t.Context(), text, LearnOptions{Cache: t.TempDir(), VocabSize: 3}); err == nil || !strings.Contains(err.Error(), "token: vocabulary size 3") {
		t.Error(err)
	}
	if _, err := Learn(t.Context(), text, LearnOptions{Cache: t.TempDir(), VocabSize: 300, Pattern: -1}); err == nil || !strings.Contains(err.Error(), "unknown pattern -1") {
		t.Error(err)
	}
	if _, err := Learn(t.Context(), text, LearnOptions{Cache: filepath.Join(root, "a.txt", "x"), VocabSize: 300}); err == nil || !strings.Contains(err.Error(), "choose another cache folder") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cache := filepath.Join(t.TempDir(), "cache")
	if _, err := Learn(ctx, text, LearnOptions{Cache: cache, VocabSize: 300}); !errors.Is(err, context.Canceled) || entries(t, cache) != "" {
		t.Error(err)
	}
}

func TestStageNames(t *testing.T) {
	for s, want := range map[Stage]string{Counting: "counting words", Merging: "learning the vocabulary", Encoding: "encoding", 9: "stage(9)"} {
		if s.String() != want {
			t.Errorf("%s, want %s", s, want)
		}
	}
	for f, want := range map[Format]string{Auto: "auto", Text: "text", JSONL: "jsonl", 9: "format(9)"} {
		if f.String() != want {
			t.Errorf("%s, want %s", f, want)
		}
	}
}
