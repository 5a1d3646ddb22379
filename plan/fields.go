package plan

import (
	"slices"

	"carve/internal/document"
	"carve/mesh"
)

// field is an entry of a table of keys.
func field(key string, c document.Codec) document.Field { return document.Field{Key: key, Codec: c} }

// codec binds the keys of the file to d.
func (d *draft) codec() document.Codec {
	return document.Map(
		field("version", document.AtLeast(1, &d.version)),
		field("model", d.Model.codec(&d.modelAt)),
		field("workload", d.Workload.codec()),
		field("cluster", d.Cluster.codec(&d.clusterAt)),
		field("layout", d.Layout.codec()),
		field("micro_batch", document.AtLeast(1, &d.MicroBatch)),
		field("precision", document.Enum(&d.Precision, precisionNames()...)),
		field("recompute", d.Recompute.codec()),
		field("offload", document.Enum(&d.Offload, offloadNames()...)),
		field("optimizer", d.Optimizer.codec()),
		field("checkpoint", d.Checkpoint.codec()),
		field("logging", document.Map(field("interval", document.AtLeast(1, &d.Logging.Interval)))),
		field("engine", document.Enum(&d.Engine, engineNames()...)),
		field("seed", document.Seed(&d.Seed)),
	)
}

// codec binds the keys of a workload; of tokens and steps the one in force is written.
func (w *Workload) codec() document.Codec {
	return document.Map(
		field("sequence", document.AtLeast(1, &w.Sequence)),
		field("global_batch", document.AtLeast(1, &w.GlobalBatch)),
		field("tokens", document.When(func() bool { return w.Tokens != 0 }, tokens(w))),
		field("steps", document.When(func() bool { return w.Steps != 0 }, document.AtLeast(1, &w.Steps))),
		field("data", document.Slice(&w.Data, (*Source).codec)),
		field("packing", document.Enum(&w.Packing, packingNames()...)),
		field("tokenizer", w.Tokenizer.codec()),
		field("validation", w.Validation.codec()),
	)
}

// tokens is the codec of the number of tokens, at least 1.
func tokens(w *Workload) document.Codec {
	c := document.Count(&w.Tokens)
	decode := c.Decode
	c.Decode = func(r *document.Reader, n *document.Node) {
		decode(r, n)
		if w.Tokens < 1 && !r.Failed() {
			r.Fault(n, "want a whole number from 1 up, have %s", document.Clip(n.Text))
		}
	}
	return c
}

// codec binds the keys of a source.
func (s *Source) codec() document.Codec {
	c := document.Map(
		field("path", document.Text(&s.Path)),
		field("weight", document.Float(&s.Weight)),
		field("kind", document.Enum(&s.Kind, dataKindNames()...)),
	)
	decode := c.Decode
	c.Decode = func(r *document.Reader, n *document.Node) {
		s.Weight = 1
		decode(r, n)
	}
	return c
}

// codec reads "byte", {bpe: vocabulary}, or the path of a tokenizer.json.
func (t *Tokenizer) codec() document.Codec {
	mapping := document.Map(field("bpe", document.AtLeast(1, &t.Vocab)))
	return document.Codec{
		Decode: func(r *document.Reader, n *document.Node) {
			switch {
			case n.Kind == document.Mapping && len(n.Entries) > 0:
				*t = Tokenizer{Kind: TrainedBPE}
				mapping.Decode(r, n)
			case n.Kind == document.String && n.Text == "byte":
				*t = Tokenizer{}
			case n.Kind == document.String && isPath(n.Text):
				*t = Tokenizer{Kind: FromTokenizerFile, Path: n.Text}
			default:
				r.Fault(n, "want byte, {bpe: size of the vocabulary} or the path of a tokenizer.json, have %s", describe(n))
			}
		},
		Encode: func() *document.Node {
			switch t.Kind {
			case TrainedBPE:
				return mapping.Encode()
			case FromTokenizerFile:
				return text(t.Path)
			case ByteTokenizer:
			}
			return text("byte")
		},
	}
}

// codec binds the keys of validation.
func (v *Validation) codec() document.Codec {
	return document.Map(
		field("fraction", document.Float(&v.Fraction)),
		field("interval", document.Int(&v.Interval)),
		field("batches", document.AtLeast(1, &v.Batches)),
	)
}

// codec binds the keys of a layout.
func (l *Layout) codec() document.Codec {
	d := &l.Degrees
	return document.Map(
		field("dp", document.AtLeast(1, &d[mesh.DP])),
		field("tp", document.AtLeast(1, &d[mesh.TP])),
		field("pp", document.AtLeast(1, &d[mesh.PP])),
		field("cp", document.AtLeast(1, &d[mesh.CP])),
		field("ep", document.AtLeast(1, &d[mesh.EP])),
		field("order", order(&l.Order)),
		field("tensor", document.Map(
			field("kind", document.Enum(&l.Tensor.Kind, tensorNames()...)),
			field("chunks", document.AtLeast(1, &l.Tensor.Chunks)),
		)),
		field("sequence_parallel", document.Flag(&l.SequenceParallel)),
		field("zero", l.Zero.codec()),
		field("pipeline", l.Pipeline.codec()),
		field("context", document.Map(
			field("kind", document.Enum(&l.Context.Kind, contextNames()...)),
			field("balance", document.Enum(&l.Context.Balance, contextBalanceNames()...)),
		)),
		field("experts", document.Map(
			field("dispatch", document.Enum(&l.Experts.Dispatch, dispatchNames()...)),
			field("balance", document.Enum(&l.Experts.Balance, balanceNames()...)),
			field("capacity", document.Float(&l.Experts.Capacity)),
			field("tensor", document.AtLeast(1, &l.Experts.Tensor)),
			field("rate", document.When(func() bool { return l.Experts.Rate != 0 }, document.Float(&l.Experts.Rate))),
			field("overlap", document.When(func() bool { return l.Experts.Overlap }, document.Flag(&l.Experts.Overlap))),
		)),
	)
}

// order is the codec of the list of the five axes.
func order(o *mesh.Order) document.Codec {
	axes := o[:]
	list := document.Slice(&axes, func(a *mesh.Axis) document.Codec {
		names := make([]string, mesh.AxisCount)
		for i, axis := range mesh.All {
			names[i] = axis.String()
		}
		return document.Enum(a, names...)
	})
	decode := list.Decode
	list.Decode = func(r *document.Reader, n *document.Node) {
		if n.Kind == document.List && len(n.Items) != mesh.AxisCount {
			r.Fault(n, "want each of dp, tp, pp, cp and ep once, have %d entries", len(n.Items))
			return
		}
		axes = slices.Clone(axes)
		if decode(r, n); len(axes) == mesh.AxisCount {
			copy(o[:], axes)
		}
	}
	return list
}

// codec binds the keys of state sharding.
func (z *Zero) codec() document.Codec {
	return document.Map(
		field("stage", number(document.Enum(&z.Stage, zeroStageNames()...))),
		field("hybrid", document.Int(&z.Hybrid)),
		field("bucket", document.Size(&z.Bucket)),
		field("prefetch", document.Int(&z.Prefetch)),
		field("reshard", document.Flag(&z.Reshard)),
		field("ownership", document.Enum(&z.Ownership, ownershipNames()...)),
		field("reduce", document.Enum(&z.Reduce, reduceNames()...)),
	)
}

// number makes a codec of names write them as numbers, which they look like.
func number(c document.Codec) document.Codec {
	encode := c.Encode
	c.Encode = func() *document.Node {
		n := encode()
		n.Kind = document.Number
		return n
	}
	return c
}

// codec binds the keys of a pipeline.
func (p *Pipeline) codec() document.Codec {
	return document.Map(
		field("schedule", document.Enum(&p.Schedule, scheduleNames()...)),
		field("virtual", document.AtLeast(1, &p.Virtual)),
		field("stages", p.Stages.codec()),
	)
}

// codec reads "balanced", "even" or a list of layers per chunk.
func (s *Stages) codec() document.Codec {
	list := document.Slice(&s.Layers, document.Int)
	return document.Codec{
		Decode: func(r *document.Reader, n *document.Node) {
			*s = Stages{}
			if n.Kind == document.List {
				s.Kind = Listed
				list.Decode(r, n)
				return
			}
			document.Enum(&s.Kind, stagesNames()...).Decode(r, n)
		},
		Encode: func() *document.Node {
			if s.Kind == Listed {
				return list.Encode()
			}
			return text(document.Name(s.Kind, stagesNames()))
		},
	}
}

// codec reads "none", "selective", "full" or {every: layers}.
func (c *Recompute) codec() document.Codec {
	mapping := document.Map(field("every", document.AtLeast(1, &c.Every)))
	return document.Codec{
		Decode: func(r *document.Reader, n *document.Node) {
			*c = Recompute{}
			if n.Kind == document.Mapping {
				c.Kind, c.Every = Periodic, 1
				mapping.Decode(r, n)
				return
			}
			document.Enum(&c.Kind, recomputeNames()...).Decode(r, n)
		},
		Encode: func() *document.Node {
			if c.Kind == Periodic {
				return mapping.Encode()
			}
			return text(document.Name(c.Kind, recomputeNames()))
		},
	}
}

// codec binds the keys of an optimizer.
func (o *Optimizer) codec() document.Codec {
	return document.Map(
		field("name", document.Enum(&o.Name, optimizerNames()...)),
		field("learning_rate", document.Float(&o.LearningRate)),
		field("min_ratio", document.Float(&o.MinRatio)),
		field("schedule", document.Enum(&o.Schedule, rateScheduleNames()...)),
		field("warmup", document.Int(&o.Warmup)),
		field("decay", document.Float(&o.Decay)),
		field("beta1", document.Float(&o.Beta1)),
		field("beta2", document.Float(&o.Beta2)),
		field("eps", document.Float(&o.Epsilon)),
		field("momentum", document.Float(&o.Momentum)),
		field("weight_decay", document.Float(&o.WeightDecay)),
		field("clip", document.Float(&o.Clip)),
	)
}

// codec binds the keys of checkpoints.
func (c *Checkpoint) codec() document.Codec {
	return document.Map(
		field("every", document.Int(&c.Every)),
		field("keep", document.AtLeast(1, &c.Keep)),
	)
}

// text returns the node of a text.
func text(s string) *document.Node { return &document.Node{Kind: document.String, Text: s} }

// describe returns the text of a scalar, or what kind of value a node is.
func describe(n *document.Node) string {
	if n.Text != "" {
		return document.Clip(n.Text)
	}
	return n.Kind.String()
}
