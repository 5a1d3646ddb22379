package commtest

import (
	"fmt"

	"carve/comm"
	"carve/tensor"

	"pgregory.net/rapid"
)

// identity is two ways to the same elements: each returns a tensor that all members compare.
type identity struct {
	name string
	run  func(g *comm.Group, m maker) (a, b *tensor.Tensor, err error)
}

// maker makes tensors of one dtype with rough numbers that differ by rank.
type maker struct {
	r    *rank
	d    tensor.DType
	n    int // members
	m    int // elements of a block
	op   tensor.ReduceOp
	root int
	seed uint64
}

// input is a tensor of k blocks; every call on one rank gives the same numbers.
func (m maker) input(k int) *tensor.Tensor {
	t := m.empty(k)
	for i := range t.Len() {
		set(t, i, rough(m.d, m.seed, m.r.Rank(), i))
	}
	return t
}

func (m maker) empty(k int) *tensor.Tensor {
	return m.r.tensor(m.d, k*m.m)
}

// identities are those of the collectives; each is exact, because every reduction is in rank order.
var identities = []identity{
	{"all-reduce = reduce-scatter + all-gather", func(g *comm.Group, m maker) (a, b *tensor.Tensor, err error) {
		a, b, part := m.input(m.n), m.input(m.n), m.empty(1)
		return a, b, first(g.AllReduce(a, m.op), g.ReduceScatter(part, b, m.op), g.AllGather(b, part))
	}},
	{"all-reduce = reduce + broadcast", func(g *comm.Group, m maker) (a, b *tensor.Tensor, err error) {
		a, b = m.input(1), m.input(1)
		return a, b, first(g.AllReduce(a, m.op), g.Reduce(b, m.op, m.root), g.Broadcast(b, m.root))
	}},
	{"all-gather = gather + broadcast", func(g *comm.Group, m maker) (a, b *tensor.Tensor, err error) {
		a, b, part := m.empty(m.n), m.empty(m.n), m.input(1)
		return a, b, first(g.AllGather(a, part), g.Gather(b, part, m.root), g.Broadcast(b, m.root))
	}},
	{"reduce-scatter = reduce + scatter", func(g *comm.Group, m maker) (a, b *tensor.Tensor, err error) {
		a, b, whole := m.empty(1), m.empty(1), m.input(m.n)
		return a, b, first(g.ReduceScatter(a, whole, m.op), g.Reduce(whole, m.op, m.root), g.Scatter(b, whole, m.root))
	}},
	{"scatter after gather = nothing", func(g *comm.Group, m maker) (a, b *tensor.Tensor, err error) {
		a, b, whole := m.input(1), m.empty(1), m.empty(m.n)
		return a, b, first(g.Gather(whole, a, m.root), g.Scatter(b, whole, m.root))
	}},
	{"all-to-all twice = nothing", func(g *comm.Group, m maker) (a, b *tensor.Tensor, err error) {
		a, b, there := m.input(m.n), m.empty(m.n), m.empty(m.n)
		return a, b, first(g.AllToAll(there, a), g.AllToAll(b, there))
	}},
	{"all-to-all = n gathers", func(g *comm.Group, m maker) (a, b *tensor.Tensor, err error) {
		a, b, src := m.empty(m.n), m.empty(m.n), m.input(m.n)
		err = g.AllToAll(a, src)
		for i := 0; i < m.n && err == nil; i++ {
			block := src.Slice(i*m.m, (i+1)*m.m)
			err = g.Gather(b, block, i)
			block.Free()
		}
		return a, b, err
	}},
	{"all-to-all-v = all-to-all", func(g *comm.Group, m maker) (a, b *tensor.Tensor, err error) {
		a, b, src := m.empty(m.n), m.empty(m.n), m.input(m.n)
		counts := make([]int, m.n)
		for i := range counts {
			counts[i] = m.m
		}
		return a, b, first(g.AllToAll(a, src), g.AllToAllV(b, src, counts, counts))
	}},
	{"all-to-all-v back = nothing", func(g *comm.Group, m maker) (a, b *tensor.Tensor, err error) {
		send, recv := make([]int, m.n), make([]int, m.n)
		for i := range m.n {
			send[i] = int(mix(m.seed, g.Rank(), i) % uint64(m.m+1))
			recv[i] = int(mix(m.seed, i, g.Rank()) % uint64(m.m+1))
		}
		a, b, there := m.input(m.n), m.input(m.n), m.empty(m.n)
		return a, b, first(g.AllToAllV(there, a, send, recv), g.AllToAllV(b, there, recv, send))
	}},
	{"broadcast = n sends", func(g *comm.Group, m maker) (a, b *tensor.Tensor, err error) {
		a, b = m.input(1), m.input(1)
		err = g.Broadcast(a, m.root)
		for i := 0; i < m.n && err == nil; i++ {
			switch {
			case i == m.root:
			case g.Rank() == m.root:
				err = g.Send(b, i)
			case g.Rank() == i:
				err = g.Recv(b, m.root)
			}
		}
		return a, b, err
	}},
}

// first is the first error; the calls before it have all been made in order.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkIdentities(t rapid.TB, s Suite) {
	for _, id := range identities {
		rapid.Check(t, func(rt *rapid.T) {
			n := rapid.SampledFrom(s.sizes()).Draw(rt, "ranks")
			m := maker{
				n:    n,
				d:    rapid.SampledFrom(dtypes()).Draw(rt, "dtype"),
				m:    rapid.IntRange(0, 300).Draw(rt, "elements"),
				op:   rapid.SampledFrom(reductions()).Draw(rt, "reduction"),
				root: rapid.IntRange(0, n-1).Draw(rt, "root"),
				seed: rapid.Uint64().Draw(rt, "seed"),
			}
			s.must(rt, n, func(r *rank) error {
				m := m
				m.r = r
				a, b, err := id.run(r.all, m)
				if err != nil {
					return err
				}
				return same(id.name, a, b)
			})
		})
	}
}

// same compares two tensors bit by bit.
func same(what string, a, b *tensor.Tensor) error {
	for i := range a.Len() {
		if x, y := get(a, i), get(b, i); x != y {
			return fmt.Errorf("%s: element %d of %v is %v one way and %v the other", what, i, a, x, y)
		}
	}
	return nil
}
