package token

import "encoding/json"

// The types below are tokenizer.json, the file of Hugging Face's tokenizers
// library, as far as a byte-level BPE needs it. Decoding refuses unknown keys:
// an option that is not understood could change every id.

type fileRoot struct {
	Version       string          `json:"version"`
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	AddedTokens   []fileAdded     `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  *filePre        `json:"pre_tokenizer"`
	PostProcessor *filePost       `json:"post_processor"`
	Decoder       *filePre        `json:"decoder"`
	Model         fileModel       `json:"model"`
}

type fileAdded struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// filePre is a pre-tokenizer or a decoder; its type says which keys matter.
type filePre struct {
	Type           string       `json:"type"`
	Pretokenizers  []filePre    `json:"pretokenizers,omitempty"`
	Pattern        *filePattern `json:"pattern,omitempty"`
	Behavior       string       `json:"behavior,omitempty"`
	Invert         *bool        `json:"invert,omitempty"`
	AddPrefixSpace *bool        `json:"add_prefix_space,omitempty"`
	TrimOffsets    *bool        `json:"trim_offsets,omitempty"`
	UseRegex       *bool        `json:"use_regex,omitempty"`
}

type filePattern struct {
	Regex string `json:"Regex"`
}

// filePost is a post-processor. Templates add tokens around a text when it is
// encoded for a model, which Encode does not do, so their content is not read.
type filePost struct {
	Type string `json:"type"`
}

// UnmarshalJSON reads the type and accepts whatever else there is.
func (p *filePost) UnmarshalJSON(data []byte) error {
	type plain filePost
	return json.Unmarshal(data, (*plain)(p))
}

type fileModel struct {
	Type                    string      `json:"type"`
	Dropout                 *float64    `json:"dropout"`
	UnkToken                *string     `json:"unk_token"`
	ContinuingSubwordPrefix *string     `json:"continuing_subword_prefix"`
	EndOfWordSuffix         *string     `json:"end_of_word_suffix"`
	FuseUnk                 bool        `json:"fuse_unk"`
	ByteFallback            bool        `json:"byte_fallback"`
	IgnoreMerges            bool        `json:"ignore_merges"`
	Vocab                   fileVocab   `json:"vocab"`
	Merges                  []fileMerge `json:"merges"`
}
