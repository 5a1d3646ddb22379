package model

import (
	"slices"

	"carve/internal/document"
)

// ropeFields are the keys of rotary position that stand beside rope_theta.
func ropeFields(d *draft) []document.Field {
	r := &d.Rope
	partial := func() bool { return r.Fraction != 1 }
	return []document.Field{
		field("partial_rotary_factor", document.When(partial, document.Float(&r.Fraction))),
		field("rope_scaling", scaling(r)),
		field("rope_parameters", parameters(r)),
	}
}

// scaling is the codec of rope_scaling: null, or a mapping whose rope_type (once named type) says which
// other keys it has.
func scaling(rope *Rope) document.Codec {
	return document.Codec{
		Decode: func(r *document.Reader, n *document.Node) {
			if n.Kind != document.Null {
				document.Map(scalingFields(rope)...).Decode(r, once(n))
			}
		},
		Encode: func() *document.Node {
			if rope.Scaling == NoScaling {
				return null()
			}
			return document.Map(scalingFields(rope)...).Encode()
		},
	}
}

// once drops the old name of rope_type where the new one stands beside it, as transformers writes both.
func once(n *document.Node) *document.Node {
	if n.Get("rope_type") == nil {
		return n
	}
	copied := *n
	copied.Entries = slices.DeleteFunc(slices.Clone(n.Entries), func(e document.Entry) bool { return e.Key == "type" })
	return &copied
}

// scalingFields are the keys inside rope_scaling.
func scalingFields(rope *Rope) []document.Field {
	kind := document.Choice(&rope.Scaling,
		document.Option[Scaling]{Name: "default", Value: NoScaling},
		document.Option[Scaling]{Name: "linear", Value: LinearScaling},
		document.Option[Scaling]{Name: "llama3", Value: Llama3Scaling},
		document.Option[Scaling]{Name: "yarn", Value: YarnScaling})
	old := kind
	old.Encode = func() *document.Node { return nil }
	is := func(s Scaling) func() bool { return func() bool { return rope.Scaling == s } }
	set := func(p *float64) func() bool { return func() bool { return rope.Scaling == YarnScaling && *p != 0 } }
	stretched := func() bool { return rope.Scaling == Llama3Scaling || rope.Scaling == YarnScaling }
	scaled := func() bool { return rope.Scaling != NoScaling }
	return []document.Field{
		field("rope_type", kind),
		field("type", old),
		field("factor", document.When(scaled, document.Float(&rope.Factor))),
		field("original_max_position_embeddings", document.When(stretched, document.Int(&rope.OriginalContext))),
		field("low_freq_factor", document.When(is(Llama3Scaling), document.Float(&rope.LowFrequency))),
		field("high_freq_factor", document.When(is(Llama3Scaling), document.Float(&rope.HighFrequency))),
		field("beta_fast", document.When(is(YarnScaling), document.Float(&rope.BetaFast))),
		field("beta_slow", document.When(is(YarnScaling), document.Float(&rope.BetaSlow))),
		field("mscale", document.When(set(&rope.MScale), document.Nullable(document.Float(&rope.MScale)))),
		field("mscale_all_dim", document.When(set(&rope.MScaleAllDim), document.Nullable(document.Float(&rope.MScaleAllDim)))),
		field("attention_factor", document.When(set(&rope.AttentionFactor), document.Nullable(document.Float(&rope.AttentionFactor)))),
	}
}

// parameters is the codec of rope_parameters, where transformers 5 keeps everything about rotary position.
// It is read, not written: older versions do not know it. Gemma 3 has one mapping per type of layer.
func parameters(rope *Rope) document.Codec {
	return document.Codec{
		Decode: func(r *document.Reader, n *document.Node) {
			if n.Get(fullLayer) == nil {
				decodeParameters(r, n, rope)
				return
			}
			local := Rope{Theta: rope.LocalTheta, Fraction: rope.Fraction}
			both := document.Map(
				field(fullLayer, document.Codec{Decode: func(r *document.Reader, n *document.Node) { decodeParameters(r, n, rope) }}),
				field(slidingLayer, document.Codec{Decode: func(r *document.Reader, n *document.Node) { decodeParameters(r, n, &local) }}),
			)
			both.Decode(r, n)
			rope.LocalTheta = local.Theta
		},
		Encode: func() *document.Node { return nil },
	}
}

// decodeParameters reads one mapping of rope_parameters.
func decodeParameters(r *document.Reader, n *document.Node, rope *Rope) {
	if n.Kind == document.Null {
		return
	}
	fields := append(scalingFields(rope),
		field("rope_theta", document.Float(&rope.Theta)),
		field("partial_rotary_factor", document.Float(&rope.Fraction)))
	document.Map(fields...).Decode(r, once(n))
}
