package model

import (
	"fmt"
	"slices"

	"carve/internal/document"
)

// owner starts every error of this package.
const owner = "model"

// Read reads a config.json of Hugging Face transformers. The error holds every fault, one a line, with
// line and column: an unknown architecture, a key that changes the mathematics but is not understood, a
// wrong type, a missing size, a value out of range, sizes that do not fit each other. Keys that do not
// describe the network (token ids, library versions) are passed over.
func Read(data []byte) (Config, error) {
	n, err := document.ParseJSON(data)
	if err != nil {
		return Config{}, fmt.Errorf("model: config.json: %w", err)
	}
	r := document.NewReader(owner)
	c := readConfig(r, n)
	if err := r.Err(); err != nil {
		return Config{}, err
	}
	if err := c.Validate(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// readConfig reads the tree of a config.json.
func readConfig(r *document.Reader, n *document.Node) Config {
	if n.Kind != document.Mapping {
		r.Fault(n, "config.json: want a mapping, have %s", n.Kind)
		return Config{}
	}
	f, ok := findFamily(r, n)
	if !ok {
		return Config{}
	}
	if len(n.Entries) > maxKeys {
		r.Fault(n, "config.json has %d keys; at most %d are read", len(n.Entries), maxKeys)
		return Config{}
	}
	d := draftOf(f.common)
	fields := f.fields(&d)
	known := &document.Node{Kind: document.Mapping}
	words := vocabulary{family: f.name, own: keysOf(fields), all: allKeys(), harmless: harmless()}
	for _, entry := range n.Entries {
		if words.understands(r, entry) {
			known.Entries = append(known.Entries, entry)
		}
	}
	document.Map(fields...).Decode(r, known)
	for _, key := range f.required {
		if n.Get(key) == nil {
			r.Fault(n, "%s is missing", key)
		}
	}
	return d.settle(r, n)
}

// findFamily finds the architecture by its class, or by model_type where no class is given.
func findFamily(r *document.Reader, n *document.Node) (family, bool) {
	classes, kind := n.Get("architectures"), n.Get("model_type")
	switch {
	case classes != nil && classes.Kind == document.List && len(classes.Items) > 0:
		return matchFamily(r, classes.Items[0], "architectures", func(f family) string { return f.class })
	case classes != nil && classes.Kind != document.Null && classes.Kind != document.List:
		r.Fault(classes, "architectures: want a list with one class name, have %s", classes.Kind)
		return family{}, false
	case kind != nil:
		return matchFamily(r, kind, "model_type", func(f family) string { return f.name })
	}
	r.Fault(n, "config.json names no architecture; add model_type: %s", document.Either(architectureNames()))
	return family{}, false
}

// matchFamily finds the family that the text at a node spells.
func matchFamily(r *document.Reader, at *document.Node, key string, spelling func(family) string) (family, bool) {
	var names []string
	for _, f := range families() {
		if at.Kind == document.String && spelling(f) == at.Text {
			return f, true
		}
		names = append(names, spelling(f))
	}
	r.In(key, func() {
		r.Fault(at, "unknown architecture %q%s", document.Clip(at.Text), document.Suggest(at.Text, names))
	})
	return family{}, false
}

// maxKeys bounds the keys of a config.json; real ones have about thirty.
const maxKeys = 1000

// vocabulary is what the keys of one family's config.json may be.
type vocabulary struct {
	family             string
	own, all, harmless []string // of the family, of every family, of none
}

// understands tells whether an entry is to be decoded. A key of another family that is set, and a key
// that is a slip away from a known one, are faults; other unknown keys are passed over.
func (v vocabulary) understands(r *document.Reader, entry document.Entry) bool {
	if slices.Contains(v.own, entry.Key) {
		return true
	}
	if slices.Contains(v.harmless, entry.Key) || neutral(entry.Value) {
		return false
	}
	at := &document.Node{Line: entry.Line, Column: entry.Column}
	if slices.Contains(v.all, entry.Key) {
		r.Fault(at, "%s has no meaning for %s; remove it or name another architecture", entry.Key, v.family)
	} else if near, ok := document.Misspelt(entry.Key, v.own); ok {
		r.Fault(at, "unknown key %s; did you mean %s?", document.Clip(entry.Key), near)
	}
	return false
}

// neutral tells whether a value says no more than an absent key.
func neutral(n *document.Node) bool {
	switch n.Kind {
	case document.Null:
		return true
	case document.Bool:
		return n.Text == "false"
	case document.Number:
		return n.Text == "0" || n.Text == "0.0"
	case document.String:
		return n.Text == ""
	case document.List:
		return len(n.Items) == 0
	case document.Mapping:
		return len(n.Entries) == 0
	}
	return false
}

// harmless are the usual keys of config.json that do not describe the network.
func harmless() []string {
	return []string{
		"_name_or_path", "architectures", "auto_map", "bos_token_id", "cache_implementation", "dtype",
		"eos_token_id", "ep_size", "model_type", "n_ctx", "output_router_logits", "pad_token_id",
		"pretraining_tp", "quantization_config", "seq_aux", "torch_dtype", "transformers_version", "use_cache",
	}
}

// keysOf returns the keys of fields.
func keysOf(fields []document.Field) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.Key
	}
	return keys
}

// allKeys returns the keys of every family.
func allKeys() (keys []string) {
	for _, f := range families() {
		d := draftOf(f.common)
		keys = append(keys, keysOf(f.fields(&d))...)
	}
	return keys
}

// Write writes c as a config.json that transformers reads, and that Read reads back to c. The dtype is
// that of the weights beside it ("bfloat16"); empty leaves it out.
func Write(c Config, dtype string) []byte {
	f := families()[c.Architecture]
	d := draftOf(c)
	n := document.Map(f.fields(&d)...).Encode()
	head := []document.Entry{
		{Key: "architectures", Value: &document.Node{Kind: document.List, Items: []*document.Node{text(f.class)}}},
		{Key: "model_type", Value: text(f.name)},
	}
	if dtype != "" {
		head = append(head, document.Entry{Key: "torch_dtype", Value: text(dtype)})
	}
	n.Entries = append(head, n.Entries...)
	return document.WriteJSON(n)
}

// text returns the node of a text.
func text(s string) *document.Node { return &document.Node{Kind: document.String, Text: s} }
