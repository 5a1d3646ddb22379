package nn_test

import (
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/nn"
	"carve/tensor"
	"carve/trace"
	"carve/unit"

	"github.com/google/go-cmp/cmp"
)

// tally is calls and bytes by operation.
type tally map[comm.Op][2]int64

func (t tally) add(op comm.Op, calls int, bytes unit.Bytes) {
	t[op] = [2]int64{t[op][0] + int64(calls), t[op][1] + int64(bytes)}
}

// TestContextPrice holds the priced traffic of every kind to what an observed run counts.
func TestContextPrice(t *testing.T) {
	dtypes := []tensor.DType{tensor.BF16, tensor.FP32}
	if racing {
		dtypes = dtypes[:1]
	}
	for _, dtype := range dtypes {
		for _, l := range []layout{
			contexts(4, 1, 1, ring(mesh.Zigzag)),
			contexts(2, 2, 1, gather(mesh.Contiguous)),
			contexts(2, 1, 1, swap(mesh.Zigzag)),
			contexts(4, 2, 1, swap(mesh.Zigzag)),
		} {
			j := contextJob()
			l.dtype = dtype
			observed := make([]*comm.Observed, l.degrees.World())
			l.plant = func(r *nn.Rank, e comm.Endpoint) {
				o := comm.Observe(e, comm.ObserveOptions{Clock: func() trace.Tick { return 0 }})
				observed[e.Rank()] = o
				g, err := o.Group("context", r.Groups.Context.Ranks())
				nn.Must(err)
				r.Groups.Context = g
			}
			j.run(t, l)
			c, cp, tp := j.config, l.degrees[mesh.CP], max(l.degrees[mesh.TP], 1)
			shape := nn.ContextShape{
				Degree: cp, Sequences: j.sequences, Rows: j.sequences * j.length / cp,
				Heads: c.Heads / tp, KeyHeads: c.KVHeads / tp, Width: c.HeadDim, DType: dtype,
			}
			want := tally{}
			for _, x := range append(shape.Forward(l.context.Kind), shape.Backward(l.context.Kind)...) {
				want.add(x.Op, x.Calls*c.Layers, x.Bytes*unit.Bytes(c.Layers))
				if x.Op == comm.Send {
					want.add(comm.Recv, x.Calls*c.Layers, x.Bytes*unit.Bytes(c.Layers))
				}
			}
			for rank, o := range observed {
				got := tally{}
				for _, cost := range o.Costs() {
					got.add(cost.Op, cost.Calls, cost.Bytes)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%v %v, rank %d: %s", l, dtype, rank, diff)
				}
			}
		}
	}
}

// TestContextCheapest looks at three places where the answer is known: attention that hides all transfers, next to no
// attention with few and with many key-value heads.
func TestContextCheapest(t *testing.T) {
	few := nn.ContextShape{Degree: 4, Sequences: 1, Rows: 1024, Heads: 32, KeyHeads: 2, Width: 128, DType: tensor.BF16}
	many := few
	many.Degree, many.KeyHeads = 16, 32
	link := nn.ContextRates{Latency: 1e-6, PerByte: 1e-10}
	long := link
	long.Forward, long.Backward = 1, 2
	for _, c := range []struct {
		name  string
		shape nn.ContextShape
		rates nn.ContextRates
		want  nn.ContextKind
	}{
		{"long sequences", few, long, nn.ContextRing},
		{"no attention, few key-value heads", few, link, nn.ContextAllGather},
		{"no attention, many key-value heads", many, link, nn.ContextAllToAll},
	} {
		if got := c.shape.Cheapest(c.rates); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	few.Heads = 6
	if few.Legal(nn.ContextAllToAll) || !few.Legal(nn.ContextRing) {
		t.Error("six heads over four ranks: only all-to-all is illegal")
	}
	if got, want := many.Sent(nn.ContextAllToAll), unit.Bytes(1024*(2*32+2*32+3*32+2*32)*128*2/16*15); got != want {
		t.Errorf("all-to-all sends %v, want %v", got, want)
	}
}
