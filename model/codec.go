package model

import (
	"strconv"

	"carve/internal/document"
)

// only is the codec of a value that must be as given, because nothing else is understood.
func only(want string) document.Codec {
	return document.Codec{
		Decode: func(r *document.Reader, n *document.Node) {
			if n.Text != want || n.Kind == document.String {
				r.Fault(n, "is %s; only %s is understood", describe(n), want)
			}
		},
		Encode: func() *document.Node { return nil },
	}
}

// describe returns the text of a scalar, or what kind of value a node is.
func describe(n *document.Node) string {
	if n.Text != "" {
		return document.Clip(n.Text)
	}
	return n.Kind.String()
}

// derived is the codec of a value that repeats others: passed over, and not written.
func derived() document.Codec {
	return document.Codec{
		Decode: func(*document.Reader, *document.Node) {},
		Encode: func() *document.Node { return nil },
	}
}

// null is the value of config.json for a feature that is off.
func null() *document.Node { return &document.Node{Kind: document.Null} }

// nullable is the codec of a number for which null means zero.
func nullable(p *float64) document.Codec {
	c := document.Float(p)
	return document.Codec{
		Decode: func(r *document.Reader, n *document.Node) {
			*p = 0
			document.Nullable(c).Decode(r, n)
		},
		Encode: func() *document.Node {
			if *p == 0 {
				return null()
			}
			return c.Encode()
		},
	}
}

// orZero is the codec of a size for which null means zero.
func orZero(p *int) document.Codec {
	c := document.Int(p)
	return document.Codec{
		Decode: func(r *document.Reader, n *document.Node) {
			*p = 0
			document.Nullable(c).Decode(r, n)
		},
		Encode: func() *document.Node {
			if *p == 0 {
				return null()
			}
			return c.Encode()
		},
	}
}

// biases is the codec of one flag for the biases of all of attention.
func biases(b *Bias) document.Codec {
	c := document.Flag(&b.QKV)
	decode := c.Decode
	c.Decode = func(r *document.Reader, n *document.Node) {
		decode(r, n)
		b.Output = b.QKV
	}
	return c
}

// firstLayers is the codec of the list of the layers 0 to count-1.
func firstLayers(list *[]int, count *int) document.Codec {
	c := document.Slice(list, document.Int)
	c.Encode = func() *document.Node {
		n := &document.Node{Kind: document.List}
		for layer := range *count {
			n.Items = append(n.Items, &document.Node{Kind: document.Number, Text: strconv.Itoa(layer)})
		}
		return n
	}
	return c
}
