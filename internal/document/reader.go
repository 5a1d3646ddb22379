package document

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing wrong with a document.
type Fault struct {
	Owner   string // package that reads the document: "plan"
	Path    string // keys from the root: "layout.zero.stage"; empty at the root
	Line    int    // 0 when unknown
	Column  int
	Message string // with the remedy
}

// Error writes "plan: line 7, column 11: layout.zero.stage: want a whole number, have true".
func (f *Fault) Error() string {
	var out strings.Builder
	out.WriteString(f.Owner + ": ")
	if f.Line > 0 {
		fmt.Fprintf(&out, "line %d, column %d: ", f.Line, f.Column)
	}
	if f.Path != "" {
		out.WriteString(f.Path + ": ")
	}
	out.WriteString(f.Message)
	return out.String()
}

// Reader decodes nodes into variables and collects what is wrong.
type Reader struct {
	owner  string
	path   []string
	faults []error
	count  int
}

// NewReader returns a reader whose faults start with the name of the package that asks.
func NewReader(owner string) *Reader { return &Reader{owner: owner} }

// Fault records what is wrong at a node.
func (r *Reader) Fault(n *Node, format string, args ...any) {
	r.fault(n.Line, n.Column, fmt.Sprintf(format, args...))
}

// fault records what is wrong at a place.
func (r *Reader) fault(line, column int, message string) {
	r.count++
	if r.count <= MaxFaults {
		r.faults = append(r.faults, &Fault{r.owner, Clip(strings.Join(r.path, ".")), line, column, message})
	}
}

// wrong records that a node is not of the type wanted.
func (r *Reader) wrong(n *Node, want string) { r.Fault(n, "want %s, have %s", want, n.describe()) }

// In runs read with a key added to the path of its faults.
func (r *Reader) In(key string, read func()) {
	r.path = append(r.path, Clip(key))
	read()
	r.path = r.path[:len(r.path)-1]
}

// Failed tells whether any fault was recorded.
func (r *Reader) Failed() bool { return r.count > 0 }

// Err returns all faults joined, one a line, or nil.
func (r *Reader) Err() error {
	faults := r.faults
	if rest := r.count - len(faults); rest > 0 {
		faults = append(slices.Clip(faults), fmt.Errorf("%s: %d more like these", r.owner, rest))
	}
	return errors.Join(faults...)
}

// Decode reads a whole tree with a codec and returns all faults joined.
func Decode(owner string, n *Node, codec Codec) error {
	r := NewReader(owner)
	codec.Decode(r, n)
	return r.Err()
}
