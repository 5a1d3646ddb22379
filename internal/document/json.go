package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// ParseJSON reads one JSON value into a tree. The error is a single line with line and column. Numbers
// keep their text; keys given twice are kept, for the Reader to report.
func ParseJSON(data []byte) (*Node, error) {
	p := jsonParser{data: data, decoder: json.NewDecoder(bytes.NewReader(data))}
	switch {
	case len(data) > MaxBytes:
		return nil, fmt.Errorf("is %d bytes long; at most %d are read", len(data), MaxBytes)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, errors.New("is empty")
	case !utf8.Valid(data):
		return nil, errors.New("is not UTF-8 text")
	}
	if depth := nesting(data); depth > MaxDepth {
		return nil, fmt.Errorf("nests %d deep; at most %d is read", depth, MaxDepth)
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, p.syntax(err)
	}
	p.decoder.UseNumber()
	for i, b := range data {
		if b == '\n' {
			p.breaks = append(p.breaks, i)
		}
	}
	return p.value()
}

// nesting returns the depth of brackets outside of strings.
func nesting(data []byte) (deepest int) {
	depth, inside := 0, false
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case b == '\\' && inside:
			i++
		case b == '"':
			inside = !inside
		case inside:
		case b == '{' || b == '[':
			depth++
			deepest = max(deepest, depth)
		case b == '}' || b == ']':
			depth--
		}
	}
	return deepest
}

// jsonParser turns the tokens of a document that is known to be well formed into nodes.
type jsonParser struct {
	data    []byte
	decoder *json.Decoder
	breaks  []int // offsets of the line feeds
}

// syntax gives an error of the JSON scanner its place.
func (p *jsonParser) syntax(err error) error {
	var fault *json.SyntaxError
	if !errors.As(err, &fault) {
		return err
	}
	before := string(p.data[:min(int(fault.Offset), len(p.data))])
	line := 1 + strings.Count(before, "\n")
	column := len(before) - strings.LastIndexByte(before, '\n') - 1
	return fmt.Errorf("line %d, column %d: not JSON: %w", line, max(column, 1), fault)
}

// place returns the line and column of the next token.
func (p *jsonParser) place() (line, column int) {
	offset := int(p.decoder.InputOffset())
	for offset < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[offset]) >= 0 {
		offset++
	}
	line = sort.SearchInts(p.breaks, offset)
	start := 0
	if line > 0 {
		start = p.breaks[line-1] + 1
	}
	return line + 1, offset - start + 1
}

// value reads the next value.
func (p *jsonParser) value() (*Node, error) {
	n := &Node{}
	n.Line, n.Column = p.place()
	token, err := p.decoder.Token()
	if err != nil {
		return nil, p.syntax(err)
	}
	switch token := token.(type) {
	case bool:
		n.Kind, n.Text = Bool, fmt.Sprint(token)
	case json.Number:
		n.Kind, n.Text = Number, token.String()
	case string:
		n.Kind, n.Text = String, token
	case json.Delim:
		if token == '[' {
			n.Kind = List
			return n, p.items(n)
		}
		n.Kind = Mapping
		return n, p.entries(n)
	}
	return n, nil
}

// items reads the rest of a list.
func (p *jsonParser) items(n *Node) error {
	for p.decoder.More() {
		item, err := p.value()
		if err != nil {
			return err
		}
		n.Items = append(n.Items, item)
	}
	_, err := p.decoder.Token()
	return err
}

// entries reads the rest of a mapping.
func (p *jsonParser) entries(n *Node) error {
	for p.decoder.More() {
		key, err := p.value()
		if err != nil {
			return err
		}
		value, err := p.value()
		if err != nil {
			return err
		}
		n.Entries = append(n.Entries, Entry{key.Text, value, key.Line, key.Column})
	}
	_, err := p.decoder.Token()
	return err
}

// WriteJSON writes a tree as indented JSON with a final line feed, as Hugging Face does.
func WriteJSON(n *Node) []byte {
	var out bytes.Buffer
	writeJSON(&out, n, "\n")
	out.WriteByte('\n')
	return out.Bytes()
}

// writeJSON writes one value; margin is a line feed and the indentation of the line it stands on.
func writeJSON(out *bytes.Buffer, n *Node, margin string) {
	inner := margin + "  "
	switch n.Kind {
	case Null:
		out.WriteString("null")
	case Bool, Number:
		out.WriteString(n.Text)
	case String:
		out.WriteString(Quote(n.Text))
	case List:
		out.WriteByte('[')
		for i, item := range n.Items {
			separate(out, i, inner)
			writeJSON(out, item, inner)
		}
		closeJSON(out, len(n.Items), margin, ']')
	case Mapping:
		out.WriteByte('{')
		for i, entry := range n.Entries {
			separate(out, i, inner)
			out.WriteString(Quote(entry.Key) + ": ")
			writeJSON(out, entry.Value, inner)
		}
		closeJSON(out, len(n.Entries), margin, '}')
	}
}

// separate starts the line of element i.
func separate(out *bytes.Buffer, i int, margin string) {
	if i > 0 {
		out.WriteByte(',')
	}
	out.WriteString(margin)
}

// closeJSON ends a list or mapping; an empty one stays on its line.
func closeJSON(out *bytes.Buffer, length int, margin string, bracket byte) {
	if length > 0 {
		out.WriteString(margin)
	}
	out.WriteByte(bracket)
}

// Quote writes text as a JSON string without escaping HTML.
func Quote(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil { // a string always encodes
		return `""`
	}
	return strings.TrimSuffix(out.String(), "\n")
}
