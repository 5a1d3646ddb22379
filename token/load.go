package token

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// maxFile bounds the size of a tokenizer.json; published ones have up to 35 MB.
const maxFile = 256 << 20

// LoadFile reads a tokenizer.json as Load does.
func LoadFile(path string) (*BPE, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("token: %w; name an existing tokenizer.json", err)
	}
	defer func() { _ = f.Close() }() // only read
	b, err := load(f, maxFile)
	if err != nil {
		return nil, fmt.Errorf("token: %s: %w", path, err)
	}
	return b, nil
}

// Load reads a tokenizer.json that holds a byte-level BPE with one of the known
// patterns. Whatever it cannot honour exactly is an error.
func Load(r io.Reader) (*BPE, error) {
	b, err := load(r, maxFile)
	if err != nil {
		return nil, fmt.Errorf("token: tokenizer.json: %w", err)
	}
	return b, nil
}

// load is Load with a limit to the size in bytes.
func load(r io.Reader, limit int64) (*BPE, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("larger than %d bytes; this is no tokenizer", limit)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var root fileRoot
	if err := dec.Decode(&root); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more data after the end of the JSON object")
	}
	v, err := root.vocabulary()
	if err != nil {
		return nil, err
	}
	return newBPE(v)
}

// vocabulary checks that the file asks for nothing but a byte-level BPE and
// takes its tokens and merges.
func (f *fileRoot) vocabulary() (vocabulary, error) {
	if err := f.plain(); err != nil {
		return vocabulary{}, err
	}
	pattern, err := f.pattern()
	if err != nil {
		return vocabulary{}, err
	}
	v := vocabulary{split: newSplitter(pattern)}
	if err := f.tokens(&v); err != nil {
		return vocabulary{}, err
	}
	return v, f.merges(&v)
}

// plain refuses options that would change the ids.
func (f *fileRoot) plain() error {
	m := &f.Model
	switch {
	case m.Type != "BPE" && m.Type != "":
		return fmt.Errorf("model type %.40q is not supported; use a BPE", m.Type)
	case !null(f.Normalizer):
		return errors.New("a normalizer is not supported; use a file with normalizer null")
	case !null(f.Truncation) || !null(f.Padding):
		return errors.New("truncation and padding are not supported; set both to null")
	case m.Dropout != nil && *m.Dropout != 0:
		return errors.New("model.dropout makes ids random; set it to null")
	case m.ByteFallback:
		return errors.New("model.byte_fallback is not supported; use a byte-level vocabulary")
	case m.IgnoreMerges:
		return errors.New("model.ignore_merges is not supported; set it to false")
	case set(m.ContinuingSubwordPrefix) || set(m.EndOfWordSuffix):
		return errors.New("model.continuing_subword_prefix and end_of_word_suffix are not supported; use a byte-level vocabulary")
	case f.Decoder != nil && f.Decoder.Type != "ByteLevel":
		return fmt.Errorf("decoder %.40q is not supported; use ByteLevel", f.Decoder.Type)
	}
	return nil
}

func null(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func set(s *string) bool { return s != nil && *s != "" }

// pattern reads the pre-tokenizer: ByteLevel with its own pattern, which is that
// of GPT-2, or a Split by a known pattern before a ByteLevel without one.
func (f *fileRoot) pattern() (Pattern, error) {
	p := f.PreTokenizer
	if p != nil && p.Type == "ByteLevel" {
		if !p.ownPattern() {
			return 0, errors.New("pre_tokenizer ByteLevel alone needs use_regex true")
		}
		return GPT2, p.noPrefix()
	}
	if p == nil || p.Type != "Sequence" || len(p.Pretokenizers) != 2 || p.Pretokenizers[0].Type != "Split" || p.Pretokenizers[1].Type != "ByteLevel" {
		return 0, errors.New("pre_tokenizer is neither ByteLevel nor a Sequence of Split and ByteLevel; others are not supported")
	}
	split := p.Pretokenizers[0]
	if split.Pattern == nil || split.Behavior != "Isolated" || split.Invert != nil && *split.Invert {
		return 0, errors.New("pre_tokenizer Split needs a pattern, behavior Isolated and invert false")
	}
	if p.Pretokenizers[1].ownPattern() {
		return 0, errors.New("pre_tokenizer ByteLevel needs use_regex false behind a Split")
	}
	if err := p.Pretokenizers[1].noPrefix(); err != nil {
		return 0, err
	}
	return patternOf(split.Pattern.Regex)
}

// ownPattern tells whether a ByteLevel cuts by the pattern of GPT-2, as it does
// unless told otherwise.
func (p *filePre) ownPattern() bool { return p.UseRegex == nil || *p.UseRegex }

// noPrefix refuses a ByteLevel that would put a space before the text.
func (p *filePre) noPrefix() error {
	if p.AddPrefixSpace != nil && *p.AddPrefixSpace {
		return errors.New("pre_tokenizer add_prefix_space is not supported; set it to false")
	}
	return nil
}

// tokens fills in the bytes of every id. The ids must be 0, 1, 2 … without a gap.
func (f *fileRoot) tokens(v *vocabulary) error {
	texts := make(map[int32]string, len(f.Model.Vocab)) // spelled or special
	for name, id := range f.Model.Vocab {
		if first, twice := texts[id]; twice {
			return fmt.Errorf("id %d belongs to both %.40q and %.40q", id, min(first, name), max(first, name))
		}
		texts[id] = name
	}
	special := make(map[int32]bool, len(f.AddedTokens))
	for _, a := range f.AddedTokens {
		if err := f.addSpecial(v, a, texts, special); err != nil {
			return err
		}
	}
	slices.SortFunc(v.special, func(a, b Special) int { return cmp.Compare(a.ID, b.ID) })
	return spellTokens(v, texts, special)
}

// addSpecial takes an added token, which may or may not stand in the vocabulary.
func (f *fileRoot) addSpecial(v *vocabulary, a fileAdded, texts map[int32]string, special map[int32]bool) error {
	if !a.Special {
		return fmt.Errorf("added token %.40q is not special; such tokens are not supported", a.Content)
	}
	id, known := f.Model.Vocab[a.Content]
	if other, used := texts[a.ID]; known && id != a.ID || used && other != a.Content || special[a.ID] {
		return fmt.Errorf("added token %.40q has id %d, which is taken, or another id in the vocabulary", a.Content, a.ID)
	}
	texts[a.ID], special[a.ID] = a.Content, true
	v.special = append(v.special, Special{ID: a.ID, Text: a.Content})
	return nil
}

// spellTokens turns the names of the file into bytes.
func spellTokens(v *vocabulary, texts map[int32]string, special map[int32]bool) error {
	letters := newAlphabet()
	v.tokens = make([][]byte, len(texts))
	for id := range int32(len(texts)) {
		text, ok := texts[id]
		if !ok {
			return fmt.Errorf("id %d is missing among %d tokens; ids must have no gap", id, len(texts))
		}
		if special[id] {
			v.tokens[id] = []byte(text)
			continue
		}
		var err error
		if v.tokens[id], err = letters.read(text); err != nil {
			return err
		}
	}
	return nil
}

// merges fills in the merges.
func (f *fileRoot) merges(v *vocabulary) error {
	for rank, m := range f.Model.Merges {
		left, ok1 := f.Model.Vocab[m.left]
		right, ok2 := f.Model.Vocab[m.right]
		joined, ok3 := f.Model.Vocab[m.left+m.right]
		if !ok1 || !ok2 || !ok3 {
			return fmt.Errorf("merge %d, %.40q and %.40q: the two and what they join into must be in the vocabulary", rank, m.left, m.right)
		}
		v.merges = append(v.merges, merge{left, right, joined})
	}
	return nil
}
