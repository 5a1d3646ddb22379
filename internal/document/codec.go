package document

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"carve/unit"
)

// Codec binds one value of a document to a variable, in both directions.
type Codec struct {
	Decode func(r *Reader, n *Node)
	Encode func() *Node // nil leaves the key out
}

// Field is one key of a mapping.
type Field struct {
	Key   string
	Codec Codec
}

// Map is the codec of a mapping with the given keys, written in that order.
func Map(fields ...Field) Codec {
	return Codec{
		Decode: func(r *Reader, n *Node) { decodeMap(r, n, fields) },
		Encode: func() *Node { return encodeMap(fields) },
	}
}

// decodeMap reads the entries of a mapping into its fields.
func decodeMap(r *Reader, n *Node, fields []Field) {
	if n.Kind != Mapping {
		r.wrong(n, "a mapping with "+Either(keys(fields)))
		return
	}
	seen := map[string]bool{}
	for _, entry := range n.Entries {
		r.In(entry.Key, func() {
			i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == entry.Key })
			switch {
			case i < 0 && r.count >= MaxFaults:
				r.count++ // nobody reads the suggestion, so none is searched
			case i < 0:
				r.fault(entry.Line, entry.Column, "unknown key"+Suggest(entry.Key, keys(fields)))
			case seen[entry.Key]:
				r.fault(entry.Line, entry.Column, "given twice; keep one")
			default:
				fields[i].Codec.Decode(r, entry.Value)
			}
			seen[entry.Key] = true
		})
	}
}

// encodeMap writes the fields that have something to say.
func encodeMap(fields []Field) *Node {
	n := &Node{Kind: Mapping}
	for _, f := range fields {
		if value := f.Codec.Encode(); value != nil {
			n.Entries = append(n.Entries, Entry{Key: f.Key, Value: value})
		}
	}
	return n
}

// keys returns the keys of fields.
func keys(fields []Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Key
	}
	return names
}

// Int is the codec of a whole number, which may be written with an exponent (1e6).
func Int(p *int) Codec {
	return Codec{
		Decode: func(r *Reader, n *Node) {
			if v, ok := whole(r, n); ok {
				*p = int(v)
			}
		},
		Encode: func() *Node { return &Node{Kind: Number, Text: strconv.Itoa(*p)} },
	}
}

// Count is the codec of a number of things; round ones from a million up are written 15e12.
func Count(p *unit.Count) Codec {
	return Codec{
		Decode: func(r *Reader, n *Node) {
			if v, ok := whole(r, n); ok {
				*p = unit.Count(v)
			}
		},
		Encode: func() *Node { return &Node{Kind: Number, Text: round(int64(*p))} },
	}
}

// Seed is the codec of a seed: any whole number of 64 bits, not negative.
func Seed(p *uint64) Codec {
	return Codec{
		Decode: func(r *Reader, n *Node) {
			v, err := strconv.ParseUint(n.Text, 10, 64)
			if n.Kind != Number || err != nil {
				r.wrong(n, "a whole number from 0 to 2^64-1")
				return
			}
			*p = v
		},
		Encode: func() *Node { return &Node{Kind: Number, Text: strconv.FormatUint(*p, 10)} },
	}
}

// Exact whole numbers of a float64 end here.
const maxExact = 1 << 53

// whole reads a whole number of at most 53 bits.
func whole(r *Reader, n *Node) (int64, bool) {
	if n.Kind != Number {
		r.wrong(n, "a whole number")
		return 0, false
	}
	exact, notDigits := strconv.ParseInt(n.Text, 10, 64)
	if notDigits == nil && exact <= maxExact && exact >= -maxExact {
		return exact, true
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	switch {
	case err != nil || notDigits == nil || math.Abs(v) > maxExact:
		r.wrong(n, "a whole number of at most 53 bits")
		return 0, false
	case v != math.Trunc(v):
		r.wrong(n, "a whole number")
		return 0, false
	}
	return int64(v), true
}

// round writes v, replacing six trailing zeros or more by an exponent that is a multiple of three.
func round(v int64) string {
	exponent := 0
	for v != 0 && v%1000 == 0 {
		v, exponent = v/1000, exponent+3
	}
	text := strconv.FormatInt(v, 10)
	if exponent < 6 {
		return text + strings.Repeat("0", exponent)
	}
	return text + "e" + strconv.Itoa(exponent)
}

// Float is the codec of a finite number.
func Float(p *float64) Codec {
	return Codec{
		Decode: func(r *Reader, n *Node) {
			v, err := strconv.ParseFloat(n.Text, 64)
			if n.Kind != Number || err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				r.wrong(n, "a finite number")
				return
			}
			*p = v
		},
		Encode: func() *Node { return &Node{Kind: Number, Text: FormatFloat(*p)} },
	}
}

// FormatFloat writes the shortest text that reads back as v, with a bare exponent: 0.95, 3e-4, 1e-8.
func FormatFloat(v float64) string {
	magnitude := math.Abs(v)
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) || magnitude >= 1e-3 && magnitude < 1e9 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
	sign := strings.TrimSuffix(exponent[:1], "+")
	return mantissa + "e" + sign + strings.TrimLeft(exponent[1:], "0")
}

// Flag is the codec of true or false.
func Flag(p *bool) Codec {
	return Codec{
		Decode: func(r *Reader, n *Node) {
			if n.Kind != Bool {
				r.wrong(n, "true or false")
				return
			}
			*p = n.Text == "true"
		},
		Encode: func() *Node { return &Node{Kind: Bool, Text: strconv.FormatBool(*p)} },
	}
}

// Text is the codec of a text.
func Text(p *string) Codec {
	return Codec{
		Decode: func(r *Reader, n *Node) {
			if n.Kind != String {
				r.wrong(n, "text")
				return
			}
			*p = n.Text
		},
		Encode: func() *Node { return &Node{Kind: String, Text: *p} },
	}
}

// Size is the codec of a number of bytes: a text such as 25MiB, or a plain number of bytes.
func Size(p *unit.Bytes) Codec {
	return Codec{
		Decode: func(r *Reader, n *Node) {
			v, err := unit.ParseBytes(n.Text)
			if n.Kind != Number && n.Kind != String || err != nil {
				r.wrong(n, "a size such as 25MiB")
				return
			}
			*p = v
		},
		Encode: func() *Node { return &Node{Kind: String, Text: p.Exact()} },
	}
}

// Enum is the codec of one of a few names; the variable takes the index of the name.
func Enum[T ~uint8](p *T, names ...string) Codec {
	options := make([]Option[T], len(names))
	for i, name := range names {
		options[i] = Option[T]{name, T(i)}
	}
	return Choice(p, options...)
}

// Option is a name that a document may give and the value that it stands for.
type Option[T comparable] struct {
	Name  string
	Value T
}

// Choice is the codec of one of a few names; of several names for one value the first is written.
func Choice[T comparable](p *T, options ...Option[T]) Codec {
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = o.Name
	}
	return Codec{
		Decode: func(r *Reader, n *Node) {
			i := slices.Index(names, n.Text)
			switch {
			case n.Kind == List || n.Kind == Mapping || n.Kind == Null:
				r.wrong(n, Either(names))
			case i < 0:
				r.Fault(n, "unknown value %s%s", Quote(Clip(n.Text)), Suggest(n.Text, names))
			default:
				*p = options[i].Value
			}
		},
		Encode: func() *Node {
			i := slices.IndexFunc(options, func(o Option[T]) bool { return o.Value == *p })
			if i < 0 {
				return nil
			}
			return &Node{Kind: String, Text: names[i]}
		},
	}
}

// Name returns the name of an enumerated value, or its number when it has none.
func Name[T ~uint8](v T, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return strconv.Itoa(int(v))
}

// Slice is the codec of a list; of returns the codec of one element. An empty list is nil.
func Slice[T any](p *[]T, of func(*T) Codec) Codec {
	return Codec{
		Decode: func(r *Reader, n *Node) {
			if n.Kind != List {
				r.wrong(n, "a list")
				return
			}
			if len(n.Items) == 0 {
				*p = nil
				return
			}
			list := make([]T, len(n.Items))
			for i, item := range n.Items {
				r.In(strconv.Itoa(i), func() { of(&list[i]).Decode(r, item) })
			}
			*p = list
		},
		Encode: func() *Node {
			n := &Node{Kind: List}
			for i := range *p {
				n.Items = append(n.Items, of(&(*p)[i]).Encode())
			}
			return n
		},
	}
}

// Nullable is the codec c for a value that may be null, which is as if the key were absent.
func Nullable(c Codec) Codec {
	decode := c.Decode
	c.Decode = func(r *Reader, n *Node) {
		if n.Kind != Null {
			decode(r, n)
		}
	}
	return c
}

// When is the codec c, written only while the condition holds.
func When(holds func() bool, c Codec) Codec {
	encode := c.Encode
	c.Encode = func() *Node {
		if !holds() {
			return nil
		}
		return encode()
	}
	return c
}

// AtLeast is the codec of a whole number that is refused at once when it is below low: for a size whose
// absence has a meaning, so that writing it as 0 is a mistake.
func AtLeast(low int, p *int) Codec {
	c := Int(p)
	c.Decode = func(r *Reader, n *Node) {
		if v, ok := whole(r, n); ok {
			if v < int64(low) {
				r.wrong(n, "a whole number from "+strconv.Itoa(low)+" up")
				return
			}
			*p = int(v)
		}
	}
	return c
}
