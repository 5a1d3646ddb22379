package cluster

import (
	"fmt"

	"carve/internal/document"
	"carve/unit"
)

// Parse reads a cluster from JSON, such as Encode writes. The error holds every fault, one a line.
func Parse(data []byte) (Cluster, error) {
	n, err := document.ParseJSON(data)
	if err != nil {
		return Cluster{}, fmt.Errorf("cluster: %w", err)
	}
	return Read(n)
}

// Read reads a cluster from a tree, whatever text it came from.
func Read(n *document.Node) (Cluster, error) {
	c := Cluster{Node: 1}
	if err := document.Decode("cluster", n, c.codec()); err != nil {
		return Cluster{}, err
	}
	if err := c.Validate(); err != nil {
		return Cluster{}, err
	}
	return c, nil
}

// Encode writes c whole as JSON.
func Encode(c Cluster) []byte { return document.WriteJSON(c.codec().Encode()) }

// field is an entry of a table of keys.
func field(key string, c document.Codec) document.Field { return document.Field{Key: key, Codec: c} }

// codec binds the keys of a file to c.
func (c *Cluster) codec() document.Codec {
	return document.Map(
		field("name", document.Text(&c.Name)),
		field("node", document.Int(&c.Node)),
		field("device", c.Device.codec()),
		field("levels", document.Slice(&c.Levels, (*Level).codec)),
	)
}

// codec binds the keys of a device to d.
func (d *Device) codec() document.Codec {
	return document.Map(
		field("name", document.Text(&d.Name)),
		field("peak", d.Peak.codec()),
		field("sustained", d.Sustained.codec()),
		field("memory", document.Size(&d.Memory)),
		field("bandwidth", number(&d.Bandwidth)),
		field("power", number(&d.Power)),
		field("source", document.Text(&d.Source)),
	)
}

// codec binds the keys of rates to p; unknown rates are not written.
func (p *Peaks) codec() document.Codec {
	var fields []document.Field
	for _, r := range p.named() {
		known := func() bool { return *r.value != 0 }
		fields = append(fields, field(r.format, document.When(known, number(r.value))))
	}
	return document.Map(fields...)
}

// codec binds the keys of a level to l.
func (l *Level) codec() document.Codec {
	c := document.Map(
		field("name", document.Text(&l.Name)),
		field("size", document.Int(&l.Size)),
		field("latency", number(&l.Latency)),
		field("bandwidth", number(&l.Bandwidth)),
		field("oversubscription", document.Float(&l.Oversubscription)),
		field("source", document.Text(&l.Source)),
	)
	decode := c.Decode
	c.Decode = func(r *document.Reader, n *document.Node) {
		l.Oversubscription = 1
		decode(r, n)
	}
	return c
}

// quantity is a unit that a file gives as a bare number in the base unit.
type quantity interface {
	unit.Seconds | unit.BytesPerSecond | unit.FLOPsPerSecond | unit.Watts
}

// number is the codec of a quantity.
func number[T quantity](p *T) document.Codec {
	return document.Codec{
		Decode: func(r *document.Reader, n *document.Node) {
			value := float64(*p)
			document.Float(&value).Decode(r, n)
			*p = T(value)
		},
		Encode: func() *document.Node {
			value := float64(*p)
			return document.Float(&value).Encode()
		},
	}
}
