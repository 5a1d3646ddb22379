package explain

import (
	"slices"

	"carve/mesh"
	"carve/parallel"
	"carve/plan"
	"carve/record"
	"carve/tensor"
)

// splits knows, of the activations that layers keep, how they lie on the axes that split a micro-batch. It is learned and
// not written down: the same few layers are recorded on one rank, along one axis at a time, and as the plan has them; what
// an axis makes smaller is split by it.
type splits struct {
	local []keptTensor // as the plan has them
	whole []fact       // the same tensors
}

// keptTensor is one activation that lives from forward to backward, in the order of the program.
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

// learnSplits records the variants of a plan.
func learnSplits(p plan.Plan) (splits, error) {
	whole, err := keep(p)
	if err != nil {
		return splits{}, err
	}
	s := splits{whole: make([]fact, len(whole))}
	for i, t := range whole {
		s.whole[i].shape = dimsOf(t.dims)
	}
	for _, a := range []mesh.Axis{mesh.TP, mesh.CP} {
		if p.Layout.Degrees[a] == 1 {
			continue
		}
		along, err := keep(p, a)
		if err != nil || len(along) != len(whole) {
			return splits{}, err
		}
		for i, t := range along {
			for dim, n := range dimsOf(t.dims) {
				if n < s.whole[i].shape[dim] {
					s.whole[i].spec[a] = mesh.Shard(dim)
				}
			}
		}
	}
	if s.local, err = keep(p, mesh.TP, mesh.CP); len(s.local) != len(whole) {
		return splits{}, err
	}
	return s, err
}

// of is how a class of activations lies.
func (s *splits) of(c *class) (fact, bool) {
	i := slices.Index(s.local, keptTensor{c.owner, c.dtype, c.dims})
	if i < 0 {
		return fact{}, false
	}
	return s.whole[i], true
}

// mostLayers bounds the layers of the variants: enough for one of each kind.
const mostLayers = 4

// keep records one micro-batch of a few layers over the given axes, and lists what is kept. A variant that the engine cannot
// run has nothing to tell.
func keep(p plan.Plan, axes ...mesh.Axis) ([]keptTensor, error) {
	degrees := mesh.Degrees{1, 1, 1, 1, 1}
	for _, a := range axes {
		degrees[a] = p.Layout.Degrees[a]
	}
	p.Layout.Degrees, p.Layout.Pipeline = degrees, plan.Pipeline{Virtual: 1}
	p.Layout.Zero.Stage, p.Layout.Zero.Hybrid = plan.Replicated, 0
	p.Model.Config.Layers = min(p.Model.Config.Layers, mostLayers)
	p.Workload.GlobalBatch = p.MicroBatch
	if parallel.Check(p) != nil {
		return nil, nil //nolint:nilerr // what the engine does not run has nothing to list
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
