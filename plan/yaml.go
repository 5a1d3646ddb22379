package plan

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"carve/internal/document"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxYAML bounds the length of a file: some parts of the parser take time that grows with its square.
const maxYAML = 32 << 10

// parseYAML reads one YAML document into a tree. Anchors, aliases, tags and merge keys are refused: a
// plan says what it means where it says it, and none can be made to grow.
func parseYAML(data []byte) (n *document.Node, err error) {
	switch {
	case len(data) > maxYAML:
		return nil, fmt.Errorf("is %d bytes long; at most %d are read", len(data), maxYAML)
	case !utf8.Valid(data):
		return nil, errors.New("is not UTF-8 text")
	}
	if at := control(data); at >= 0 {
		return nil, fmt.Errorf("has the control character %#02x at byte %d", data[at], at)
	}
	if err := shallow(string(data)); err != nil {
		return nil, err
	}
	defer func() { // the parser is not ours: whatever hostile text does to it stays an error
		if fault := recover(); fault != nil {
			n, err = nil, errors.New("is not YAML that can be read")
		}
	}()
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntax(err)
	}
	return onlyDocument(file)
}

// onlyDocument returns the tree of the only document of a file.
func onlyDocument(file *ast.File) (*document.Node, error) {
	var body ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case body != nil:
			return nil, fmt.Errorf("line %d: a second document; keep one", doc.Body.GetToken().Position.Line)
		default:
			body = doc.Body
		}
	}
	if body == nil {
		return nil, errors.New("is empty; it needs version and model")
	}
	return convert(body, 0)
}

// control returns the offset of the first control character that YAML does not allow, or -1.
func control(data []byte) int {
	for i, b := range data {
		if b < ' ' && b != '\n' && b != '\r' && b != '\t' || b == 0x7f {
			return i
		}
	}
	return -1
}

// shallow refuses text that would nest deeper than any plan, before the parser recurses into it: by
// brackets, by indentation, and by the markers that open a block on one line ("- - -", "? ?").
func shallow(text string) error {
	depth := 0
	for number, line := range strings.Split(text, "\n") {
		marks := 0
		for _, r := range line {
			switch r {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			case '-', '?', ':', '&', '*', '!', '|', '>':
				marks++
			}
		}
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		if depth > document.MaxDepth || indent > 16*document.MaxDepth || marks > 64*document.MaxDepth {
			return fmt.Errorf("line %d: nests too deep; at most %d levels are read", number+1, document.MaxDepth)
		}
	}
	return nil
}

// syntax turns an error of the parser into one line with its place.
func syntax(err error) error {
	var fault yaml.Error
	if !errors.As(err, &fault) {
		return errors.New(document.Clip(firstLine(err.Error())))
	}
	place := fault.GetToken().Position
	return fmt.Errorf("line %d, column %d: this is not YAML: %s; mend the brackets, quotes or indentation there", place.Line, place.Column, document.Clip(firstLine(fault.GetMessage())))
}

// firstLine returns the text before the first line feed.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// convert turns a node of the parser into one of ours.
func convert(node ast.Node, depth int) (*document.Node, error) {
	at := node.GetToken().Position
	n := &document.Node{Line: at.Line, Column: at.Column}
	if depth > document.MaxDepth {
		return nil, fmt.Errorf("line %d, column %d: nests too deep; at most %d levels are read", at.Line, at.Column, document.MaxDepth)
	}
	switch node := node.(type) {
	case *ast.NullNode:
		return n, nil
	case *ast.LiteralNode:
		n.Kind, n.Text = document.String, node.Value.Value
		return n, nil
	case *ast.SequenceNode:
		return convertList(n, node, depth)
	case *ast.MappingNode:
		return convertMapping(n, node.Values, depth)
	case *ast.MappingValueNode:
		return convertMapping(n, []*ast.MappingValueNode{node}, depth)
	case ast.ScalarNode:
		return scalar(n, node)
	default:
		return nil, fmt.Errorf("line %d, column %d: %s", at.Line, at.Column, refused(node))
	}
}

// refused says what a node is that plans do not have.
func refused(node ast.Node) string {
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "anchors, aliases and merge keys are not read; write the value out"
	case *ast.TagNode:
		return "tags are not read; write the value without one"
	default:
		return "is not a value, a list or a mapping"
	}
}

// convertList turns a list.
func convertList(n *document.Node, list *ast.SequenceNode, depth int) (*document.Node, error) {
	n.Kind = document.List
	for _, value := range list.Values {
		item, err := convert(value, depth+1)
		if err != nil {
			return nil, err
		}
		n.Items = append(n.Items, item)
	}
	return n, nil
}

// convertMapping turns a mapping. Its place is that of its first key.
func convertMapping(n *document.Node, values []*ast.MappingValueNode, depth int) (*document.Node, error) {
	n.Kind = document.Mapping
	for i, value := range values {
		at := value.Key.GetToken().Position
		if i == 0 {
			n.Line, n.Column = at.Line, at.Column
		}
		key, err := convert(value.Key, depth+1)
		if err != nil {
			return nil, err
		}
		if key.Kind == document.List || key.Kind == document.Mapping {
			return nil, fmt.Errorf("line %d, column %d: a key is text, not %s", at.Line, at.Column, key.Kind)
		}
		item, err := convert(value.Value, depth+1)
		if err != nil {
			return nil, err
		}
		n.Entries = append(n.Entries, document.Entry{Key: key.Text, Value: item, Line: at.Line, Column: at.Column})
	}
	return n, nil
}

// scalar turns a scalar: quoted text is text, anything else is what the core schema of YAML 1.2 says.
func scalar(n *document.Node, node ast.ScalarNode) (*document.Node, error) {
	t := node.GetToken()
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode, *ast.TagNode:
		return nil, fmt.Errorf("line %d, column %d: %s", n.Line, n.Column, refused(node))
	default:
	}
	n.Text = t.Value
	if text, ok := node.(*ast.StringNode); ok {
		n.Text = text.Value
	}
	if t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType {
		n.Kind = document.String
		return n, nil
	}
	n.Kind = resolve(n.Text)
	return n, nil
}

// decimalNumber is what counts as a number: no hexadecimal, octal, underscores, infinity or NaN.
var decimalNumber = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)

// resolve returns the kind of a plain scalar.
func resolve(text string) document.Kind {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return document.Null
	case "true", "false":
		return document.Bool
	}
	if decimalNumber.MatchString(text) {
		return document.Number
	}
	return document.String
}
