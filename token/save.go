package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Save writes b as a tokenizer.json, which Load and Hugging Face's tokenizers
// library read. Equal tokenizers give equal bytes.
func (b *BPE) Save(w io.Writer) error {
	root := b.file()
	if len(root.Model.Vocab) != len(b.tokens) {
		return errors.New("token: a special token is named like the spelling of an ordinary one; rename it")
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		return fmt.Errorf("token: writing tokenizer.json: %w", err)
	}
	return nil
}

// file is b in the form of tokenizer.json.
func (b *BPE) file() fileRoot {
	letters := newAlphabet()
	root := fileRoot{
		Version:       "1.0",
		PreTokenizer:  b.filePre(),
		PostProcessor: nil,
		Decoder:       byteLevel(true),
		Model:         fileModel{Type: "BPE", Vocab: make(fileVocab, len(b.tokens)), Merges: make([]fileMerge, 0, len(b.merges))},
	}
	special := make(map[int32]bool, len(b.special))
	for _, s := range b.special {
		special[s.ID] = true
		root.Model.Vocab[s.Text] = s.ID
		root.AddedTokens = append(root.AddedTokens, fileAdded{ID: s.ID, Content: s.Text, Special: true})
	}
	for id, text := range b.tokens {
		if !special[int32(id)] {
			root.Model.Vocab[letters.write(text)] = int32(id)
		}
	}
	for _, m := range b.merges {
		root.Model.Merges = append(root.Model.Merges, fileMerge{letters.write(b.tokens[m.left]), letters.write(b.tokens[m.right])})
	}
	return root
}

// filePre is the pre-tokenizer that cuts as b does.
func (b *BPE) filePre() *filePre {
	split := filePre{
		Type:     "Split",
		Pattern:  &filePattern{Regex: b.Pattern().Regex()},
		Behavior: "Isolated",
		Invert:   new(false),
	}
	return &filePre{Type: "Sequence", Pretokenizers: []filePre{split, *byteLevel(false)}}
}

func byteLevel(regex bool) *filePre {
	return &filePre{Type: "ByteLevel", AddPrefixSpace: new(false), TrimOffsets: new(true), UseRegex: new(regex)}
}
