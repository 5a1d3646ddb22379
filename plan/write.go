package plan

import (
	"regexp"
	"strings"

	"carve/internal/document"
)

// width is the length that a line is kept to where a mapping or list may be written on one.
const width = 100

// writeYAML writes a mapping as YAML: a key a line, and mappings and lists on the line of their key
// where they fit.
func writeYAML(n *document.Node) []byte {
	var out strings.Builder
	writeBlock(&out, n, "")
	return []byte(out.String())
}

// writeBlock writes the entries of a mapping, one or more lines each.
func writeBlock(out *strings.Builder, n *document.Node, margin string) {
	for _, entry := range n.Entries {
		line := margin + scalarText(entry.Key) + ":"
		flow := flowText(entry.Value)
		switch {
		case len(line)+1+len(flow) <= width || entry.Value.Kind != document.Mapping && entry.Value.Kind != document.List:
			out.WriteString(line + " " + flow + "\n")
		case entry.Value.Kind == document.List:
			out.WriteString(line + "\n")
			for _, item := range entry.Value.Items {
				out.WriteString(margin + "  - " + flowText(item) + "\n")
			}
		default:
			out.WriteString(line + "\n")
			writeBlock(out, entry.Value, margin+"  ")
		}
	}
}

// flowText writes a value on one line.
func flowText(n *document.Node) string {
	var parts []string
	switch n.Kind {
	case document.Null:
		return "null"
	case document.Bool, document.Number:
		return n.Text
	case document.String:
		return scalarText(n.Text)
	case document.List:
		for _, item := range n.Items {
			parts = append(parts, flowText(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case document.Mapping:
		for _, entry := range n.Entries {
			parts = append(parts, scalarText(entry.Key)+": "+flowText(entry.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return ""
}

// plain is text that needs no quotes wherever it stands.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_./+@-]*$`)

// scalarText writes text, quoted where it could be taken for something else.
func scalarText(s string) string {
	if plain.MatchString(s) && resolve(s) == document.String && !wordy(s) {
		return s
	}
	return document.Quote(s)
}

// wordy tells whether other readers of YAML take a word for a truth value or a number.
func wordy(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null", ".nan", ".inf":
		return true
	}
	return strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0o") || strings.HasPrefix(s, "0b")
}
