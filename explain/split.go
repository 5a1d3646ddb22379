package explain

import (
	"errors"
	"maps"
	"slices"

	"carve/mesh"
	"carve/parallel"
	"carve/plan"
	"carve/record"
	"carve/tensor"
)

// splits knows, of the activations that layers keep, how they lie on the axes that split a micro-batch. It is learned and
// not written down: the same few layers are recorded on one rank, along one axis at a time, and as the plan has them; what
// an axis makes smaller is split by it. What cannot be told so is left out.
type splits struct {
	facts map[keptTensor]fact // by the tensor as the plan has it
	gap   error               // why nothing could be learned; nil when it was
}

// keptTensor is one activation that lives from forward to backward.
type keptTensor struct {
	owner string
	dtype tensor.DType
	dims  [tensor.MaxDims]int
}

// fact is a whole tensor and its placement.
type fact struct {
	shape []int
	spec  mesh.Spec
}

// same tells whether two facts say the same.
func (f fact) same(g fact) bool { return f.spec == g.spec && slices.Equal(f.shape, g.shape) }

// family is what a tensor has in common with itself in another variant: owner, dtype and number of dims.
type family struct {
	owner string
	dtype tensor.DType
	dims  int
}

// families lists tensors by family, each in the order of the program.
func families(list []keptTensor) map[family][][]int {
	out := map[family][][]int{}
	for _, t := range list {
		dims := dimsOf(t.dims)
		f := family{t.owner, t.dtype, len(dims)}
		out[f] = append(out[f], dims)
	}
	return out
}

// learnSplits records the variants of a plan.
func learnSplits(p plan.Plan) splits {
	var lists [4][]keptTensor // whole, along TP, along CP, as the plan has them
	known := map[mesh.Degrees][]keptTensor{}
	for i, axes := range [][]mesh.Axis{nil, {mesh.TP}, {mesh.CP}, {mesh.TP, mesh.CP}} {
		v := variant(p, axes...)
		list, ok := known[v.Layout.Degrees]
		if !ok {
			var err error
			if list, err = keep(v); err != nil {
				return splits{gap: err}
			}
			known[v.Layout.Degrees] = list
		}
		lists[i] = list
	}
	return splits{facts: match(lists[0], lists[1], lists[2], lists[3], p.Layout.Degrees)}
}

// match learns from the variants. A family with another number of tensors in one of them, a tensor that an axis changes in
// another way than a split of one dim, and one that is like another which lies otherwise: of these nothing is known.
func match(whole, alongTP, alongCP, local []keptTensor, d mesh.Degrees) map[keptTensor]fact {
	wholes, tp, cp := families(whole), families(alongTP), families(alongCP)
	known, odd := map[keptTensor]fact{}, map[keptTensor]bool{}
	counts, seen := families(local), map[family]int{}
	for _, t := range local {
		f := family{t.owner, t.dtype, len(dimsOf(t.dims))}
		i, n := seen[f], len(counts[f])
		seen[f]++
		if len(wholes[f]) != n || len(tp[f]) != n || len(cp[f]) != n {
			odd[t] = true
			continue
		}
		one, ok := locate(wholes[f][i], tp[f][i], cp[f][i], counts[f][i], d)
		before, again := known[t]
		odd[t] = odd[t] || !ok || again && !one.same(before)
		known[t] = one
	}
	maps.DeleteFunc(known, func(t keptTensor, _ fact) bool { return odd[t] })
	return known
}

// locate is how a tensor lies that is of a size whole, of another along each axis, and of a fourth along both; not ok when the
// four do not belong to one tensor.
func locate(whole, tp, cp, both []int, d mesh.Degrees) (f fact, ok bool) {
	var okTP, okCP bool
	f.shape = whole
	f.spec[mesh.TP], okTP = placed(whole, tp, d[mesh.TP])
	f.spec[mesh.CP], okCP = placed(whole, cp, d[mesh.CP])
	for dim, n := range both {
		switch {
		case tp[dim] == whole[dim] && n != cp[dim], cp[dim] == whole[dim] && n != tp[dim], n > min(tp[dim], cp[dim]):
			return f, false
		}
	}
	return f, okTP && okCP
}

// placed tells along which dim an axis of a degree splits a tensor; not ok when it changes it in another way, as key-value heads
// that several ranks hold do.
func placed(whole, part []int, degree int) (at mesh.Placement, ok bool) {
	at = mesh.Replicate()
	for dim, n := range part {
		switch {
		case n == whole[dim]:
		case n != mesh.Split(whole[dim], degree, 0).Len() || at.Kind == mesh.Sharded:
			return at, false
		default:
			at = mesh.Shard(dim)
		}
	}
	return at, true
}

// of is how a class of activations lies.
func (s *splits) of(c *class) (fact, bool) {
	f, ok := s.facts[keptTensor{c.owner, c.dtype, c.dims}]
	return f, ok
}

// mostLayers bounds the layers of the variants: enough for one of each kind.
const mostLayers = 4

// variant is one micro-batch of a few layers of a plan over the given axes. What belongs to the other axes is as it is without
// them, so that the variant of a legal plan is legal.
func variant(p plan.Plan, axes ...mesh.Axis) plan.Plan {
	l, plain := &p.Layout, plan.Default().Layout
	whole := l.Degrees
	l.Degrees = mesh.Degrees{1, 1, 1, 1, 1}
	for _, a := range axes {
		l.Degrees[a] = whole[a]
	}
	l.Pipeline, l.Pipeline.Virtual = plan.Pipeline{}, 1
	l.Zero = plain.Zero
	l.Zero.Stage, l.Zero.Hybrid = plan.Replicated, 0
	if l.Degrees[mesh.TP] == 1 {
		l.Tensor, l.SequenceParallel, l.Experts.Tensor = plain.Tensor, false, 1
	}
	l.Experts.Overlap = false
	if l.Degrees[mesh.CP] == 1 {
		l.Context = plain.Context
	}
	c := &p.Model.Config
	c.Layers = min(c.Layers, mostLayers)
	c.Experts.FirstDense = min(c.Experts.FirstDense, c.Layers-1)
	p.Recompute.Every = min(p.Recompute.Every, c.Layers)
	p.Workload.GlobalBatch = p.MicroBatch
	return p
}

// keep records a variant and lists what it keeps.
func keep(p plan.Plan) ([]keptTensor, error) {
	if err := errors.Join(p.Validate(), parallel.Check(p)); err != nil {
		return nil, err
	}
	k := &keeper{watch: newWatch(), at: map[int]int{}}
	_, err := record.Run(p, 0, record.Options{Kernels: tensor.PortableKernels, Sink: k})
	return k.list(), err
}

// keeper notes the activations that are kept.
type keeper struct {
	*watch
	all  []keptTensor
	kept []bool
	at   map[int]int // index by number of the allocation
}

// Took implements [record.Sink].
func (k *keeper) Took(m record.Moment, a tensor.Allocation) {
	k.watch.Took(m, a)
	if a.Category == tensor.Activation && m.Step != record.Building {
		k.at[a.Number] = len(k.all)
		k.all = append(k.all, keptTensor{k.class(a.Owner), a.DType, a.Dims})
		k.kept = append(k.kept, false)
	}
}

// Gave implements [record.Sink].
func (k *keeper) Gave(m record.Moment, a tensor.Allocation) {
	if i, ok := k.at[a.Number]; ok {
		k.kept[i] = k.living[a.Number].until(k.stamp(m)) == kept
	}
	k.watch.Gave(m, a)
}

func (k *keeper) list() (list []keptTensor) {
	for i, t := range k.all {
		if k.kept[i] {
			list = append(list, t)
		}
	}
	return list
}
