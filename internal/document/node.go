package document

import (
	"strconv"
	"strings"
)

// Limits on what is read. Real descriptions stay far below them.
const (
	MaxBytes  = 1 << 20 // length of a document
	MaxDepth  = 32      // nesting of mappings and lists
	MaxFaults = 20      // faults reported; the rest are counted
)

// Kind is the type of a value as written.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Mapping
)

// String names the kind for a person: "a number".
func (k Kind) String() string {
	switch k {
	case Null:
		return "nothing"
	case Bool:
		return "true or false"
	case Number:
		return "a number"
	case String:
		return "text"
	case List:
		return "a list"
	case Mapping:
		return "a mapping"
	}
	return "an unknown kind"
}

// Node is one value of a document.
type Node struct {
	Kind    Kind
	Text    string  // of a Bool or Number as written, of a String its content
	Items   []*Node // of a List
	Entries []Entry // of a Mapping, in file order, duplicates included
	Line    int     // from 1; 0 for a node that was not read
	Column  int     // from 1
}

// Entry is one key of a mapping with its value.
type Entry struct {
	Key    string
	Value  *Node
	Line   int
	Column int
}

// Get returns the value of the first entry with the given key, or nil.
func (n *Node) Get(key string) *Node {
	for _, entry := range n.Entries {
		if entry.Key == key {
			return entry.Value
		}
	}
	return nil
}

// Place returns where a key stands, given the keys from this node to it: "layout.zero.stage". Items of a list count from 0.
func (n *Node) Place(path string) (line, column int, ok bool) {
	for key := range strings.SplitSeq(path, ".") {
		var next *Node
		if i, err := strconv.Atoi(key); err == nil && n.Kind == List && i >= 0 && i < len(n.Items) {
			next = n.Items[i]
			line, column = next.Line, next.Column
		}
		for _, entry := range n.Entries {
			if entry.Key == key && next == nil {
				next, line, column = entry.Value, entry.Line, entry.Column
			}
		}
		if next == nil {
			return 0, 0, false
		}
		n = next
	}
	return line, column, line > 0
}

// describe says what a node is, for the end of an error: `the text "eight"`.
func (n *Node) describe() string {
	switch n.Kind {
	case Null:
		return "nothing"
	case Bool, Number:
		return Clip(n.Text)
	case String:
		return "the text " + Quote(Clip(n.Text))
	case List:
		return "a list"
	case Mapping:
		return "a mapping"
	}
	return n.Kind.String()
}
