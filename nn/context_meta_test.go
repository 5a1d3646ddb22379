package nn_test

import (
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/nn"
	"carve/tensor"

	"github.com/google/go-cmp/cmp"
)

// recording is what a rank does on the meta device.
type recording struct {
	peak      tensor.Usage
	attention float64 // FLOPs of forward and backward
	transfers []comm.Transfer
}

// record runs a job as one rank of a layout without elements and neighbours. Time is counted in FLOPs of attention.
func (j job) record(t *testing.T, l layout, rank int) (rec recording) {
	t.Helper()
	grid, err := mesh.New(l.degrees, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	e, err := comm.NewMeta(rank, grid.World(), comm.MetaOptions{
		Now:  func() int { return int(rec.attention) },
		Wait: func(x comm.Transfer) { rec.transfers = append(rec.transfers, x) },
	})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := nn.JoinGroups(e, grid)
	if err != nil {
		t.Fatal(err)
	}
	arena := tensor.NewArena(tensor.ArenaOptions{Meta: true})
	dev := tensor.NewMeta(arena, tensor.MetaOptions{Record: func(o tensor.Operation) {
		if o.Kind == tensor.OpAttention || o.Kind == tensor.OpAttentionBackward {
			rec.attention += float64(o.FLOPs)
		}
	}})
	defer dev.Close()
	w := &worker{r: &nn.Rank{
		Dev: dev, Arena: arena, Mesh: grid, At: grid.Coordinates(rank), Groups: groups, Token: e.Token(), DType: l.dtype,
		Seed: 7, Context: l.context,
	}}
	w.build(j)
	arena.ResetPeak()
	gradients(w.r, w.m, w.b)
	rec.peak = arena.Peak().Usage
	return rec
}

// peaks runs a job and returns every rank's peak of memory.
func (j job) peaks(t *testing.T, l layout) []tensor.Usage {
	t.Helper()
	peaks := make([]tensor.Usage, l.degrees.World())
	var workers []*worker
	err := j.each(t, l, func(w *worker) {
		w.r.Arena.ResetPeak()
		gradients(w.r, w.m, w.b)
		peaks[w.r.Mesh.Rank(w.r.At)] = w.r.Arena.Peak().Usage
	}, &workers)
	if err != nil {
		t.Fatal(err)
	}
	return peaks
}

// TestContextOnMeta holds the peak of memory that the meta device counts to that of a run, to the byte, for every rank and
// kind.
func TestContextOnMeta(t *testing.T) {
	if racing {
		return
	}
	for _, docs := range []documents{nil, halves} {
		j := contextJob()
		j.documents = docs
		for _, l := range []layout{
			contexts(4, 1, 1, ring(mesh.Zigzag)), contexts(2, 2, 1, ring(mesh.Contiguous)),
			contexts(4, 1, 1, gather(mesh.Contiguous)), contexts(2, 2, 1, swap(mesh.Zigzag)),
		} {
			for rank, want := range j.peaks(t, l) {
				if diff := cmp.Diff(want, j.record(t, l, rank).peak); diff != "" {
					t.Errorf("%v, rank %d: %s", l, rank, diff)
				}
			}
		}
	}
}

// TestContextWork holds the attention of all ranks together to that of one rank, and of each to a fair share under zigzag
// balance. All-to-all splits heads, so that each computes a whole head's triangle.
func TestContextWork(t *testing.T) {
	j := contextJob()
	one := j.record(t, alone(), 0).attention
	for _, l := range []layout{contexts(4, 1, 1, ring(mesh.Zigzag)), contexts(4, 1, 1, gather(mesh.Contiguous)), contexts(4, 1, 1, swap(mesh.Contiguous))} {
		sum, most := 0.0, 0.0
		for rank := range 4 {
			work := j.record(t, l, rank).attention
			sum, most = sum+work, max(most, work)
		}
		if sum != one {
			t.Errorf("%v: %v FLOPs of attention, one rank has %v", l, sum, one)
		}
		if fair := sum / 4; (most == fair) == (l.context.Kind == nn.ContextAllGather) {
			t.Errorf("%v: a rank has %v FLOPs of attention, the mean is %v", l, most, fair)
		}
	}
}

// TestContextHides holds what is priced as hidden to what a rank does between start and wait: of a ring everything but the
// last sum's way home has attention beside it, of all-gather the collective but not the sum, of all-to-all nothing.
func TestContextHides(t *testing.T) {
	j := contextJob()
	for _, l := range []layout{contexts(4, 1, 1, ring(mesh.Zigzag)), contexts(4, 1, 1, gather(mesh.Zigzag)), contexts(4, 1, 1, swap(mesh.Zigzag))} {
		c := j.config
		shape := nn.ContextShape{
			Degree: 4, Sequences: j.sequences, Rows: j.sequences * j.length / 4,
			Heads: c.Heads, KeyHeads: c.KVHeads, Width: c.HeadDim, DType: l.dtype,
		}
		want, got := map[comm.Op][2]int{}, map[comm.Op][2]int{} // hidden and exposed
		for _, x := range append(shape.Forward(l.context.Kind), shape.Backward(l.context.Kind)...) {
			n := want[x.Op]
			if x.Behind > 0 {
				n[0] += x.Calls * c.Layers
			} else {
				n[1] += x.Calls * c.Layers
			}
			want[x.Op] = n
		}
		for _, x := range j.record(t, l, 1).transfers {
			if x.Op == comm.Recv {
				continue
			}
			n := got[x.Op]
			if x.Hidden() > 0 {
				n[0]++
			} else {
				n[1]++
			}
			got[x.Op] = n
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: %s", l, diff)
		}
	}
}
