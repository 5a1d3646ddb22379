package explain

import (
	"cmp"
	"fmt"
	"slices"

	"carve/mesh"
	"carve/nn"
	"carve/plan"
	"carve/record"
	"carve/schedule"
	"carve/tensor"
	"carve/unit"
)

// state lists the classes of tensors of the recorded ranks: parameters by name and spec, then all else by category and
// size.
func (e *explainer) state() []State {
	out := e.parameters()
	var rest []State
	at := map[string]int{}
	for _, w := range e.watched {
		w.end()
		for _, s := range append(e.flat(w), e.allocations(w)...) {
			id := fmt.Sprint(s.Kind, s.Name, s.DType, s.Split, s.Lifetime)
			if !s.isFlat() {
				id += fmt.Sprint(s.Local)
			}
			j, ok := at[id]
			if !ok {
				at[id] = len(rest)
				rest = append(rest, s)
			} else if s.Bytes > rest[j].Bytes {
				rest[j] = s
			}
		}
	}
	slices.SortStableFunc(rest, func(a, b State) int {
		return cmp.Or(cmp.Compare(kindOrder(a.Kind), kindOrder(b.Kind)), cmp.Compare(b.Bytes, a.Bytes))
	})
	return append(out, rest...)
}

func kindOrder(kind string) int {
	return slices.IndexFunc(tensor.Categories(), func(c tensor.Category) bool { return c.String() == kind })
}

// parameters lists the classes of the model's parameters, on the recorded rank that has the most of each.
func (e *explainer) parameters() []State {
	var out []State
	at := map[string]int{}
	for i := range e.ranks {
		for _, s := range e.parametersOf(&e.ranks[i]) {
			j, ok := at[s.Name]
			if !ok {
				at[s.Name] = len(out)
				out = append(out, s)
			} else if s.Bytes > out[j].Bytes {
				out[j] = s
			}
		}
	}
	return out
}

// parametersOf lists those of one rank, in the order of its units.
func (e *explainer) parametersOf(r *record.Rank) []State {
	var out []State
	at := map[string]int{}
	for _, p := range r.Params {
		name := classOf(p.Name)
		j, ok := at[name]
		if !ok {
			j = len(out)
			at[name] = j
			out = append(out, e.parameter(name, p, r.DType))
		}
		out[j].Count++
		out[j].Bytes += unit.Bytes(mesh.Split(p.Len(), e.shards(tensor.Parameter, p.Terms), 0).Len() * r.DType.Size())
	}
	return out
}

// parameter is a class without tensors yet.
func (e *explainer) parameter(name string, p *nn.Param, d tensor.DType) State {
	shards := e.shards(tensor.Parameter, p.Terms)
	s := State{
		Kind: tensor.Parameter.String(), Name: name, DType: d.String(), Shape: p.Shape, Local: p.Region.Shape(), Split: p.Spec.String(),
		Replication: p.Spec.Copies(e.mesh) / e.mesh.Degree(mesh.PP) * e.holders(p) / shards, Lifetime: lasting.String(),
	}
	if shards > 1 {
		s.Split += fmt.Sprintf(", ZeRO over %d", shards)
	}
	return s
}

// holders is how many pipeline coordinates have a parameter: those with its stage on any pipe, and for a tied token table
// those with either end of the model.
func (e *explainer) holders(p *nn.Param) int {
	c, last := e.plan.Model.Config, e.plan.Layout.Chunks()-1
	tied := c.TieEmbeddings && p.Kind == nn.Table && p.Shape[0] == c.Vocab
	n := 0
	for _, chunks := range e.program.Stages {
		if slices.ContainsFunc(chunks, func(s schedule.Stage) bool { return s.Index == 0 || tied && s.Index == last }) {
			n++
		}
	}
	return n
}

// shards is over how many ranks ZeRO shards the state of a parameter whose gradients are summed over the given axes.
func (e *explainer) shards(c tensor.Category, terms mesh.Axes) int {
	n := e.mesh.Size(terms & mesh.DenseData)
	switch z := e.plan.Layout.Zero; {
	case !e.zeroed(c):
		return 1
	case z.Hybrid > 0:
		return min(z.Hybrid, n)
	}
	return n
}

// flat sums the flat tensors of a rank that last: parameters, gradients, optimizer state. How many there are is the
// affair of whoever keeps them.
func (e *explainer) flat(w *watch) (out []State) {
	names := map[tensor.Category]string{
		tensor.Parameter: "all parameters of the rank", tensor.Gradient: "all gradients of the rank", tensor.Optimizer: e.plan.Optimizer.Name.String() + " state",
	}
	for _, c := range []tensor.Category{tensor.Parameter, tensor.Gradient, tensor.Optimizer} {
		for _, d := range []tensor.DType{tensor.FP32, tensor.BF16, tensor.FP64} {
			s := State{
				Kind: c.String(), Name: names[c], DType: d.String(), Split: e.flatSplit(c), Replication: e.flatReplication(c), Lifetime: lasting.String(),
			}
			for _, k := range w.first {
				if k.category == c && k.dtype == d && k.lifetime == lasting {
					s.Count += k.most
					s.Bytes += k.mostBytes
				}
			}
			if s.Count > 0 {
				s.Local = []int{int(s.Bytes) / d.Size()}
				s.Shape = s.Local
				out = append(out, s)
			}
		}
	}
	return out
}

// isFlat tells whether a class is of flat tensors.
func (s *State) isFlat() bool { return s.Split != "" && s.Lifetime == lasting.String() }

// allocations lists the other classes of a rank that take memory.
func (e *explainer) allocations(w *watch) (out []State) {
	for _, k := range w.first {
		if k.born == building && k.lifetime != lasting {
			continue // gone before the first step
		}
		switch k.category {
		case tensor.Parameter, tensor.Gradient, tensor.Optimizer:
			if k.lifetime == lasting {
				continue
			}
		case tensor.Activation, tensor.Communication, tensor.Workspace, tensor.KVCache:
		}
		out = append(out, e.allocated(k))
	}
	return out
}

// allocated is a class of tensors that take memory.
func (e *explainer) allocated(c *class) State {
	s := State{
		Kind: c.category.String(), Name: cmp.Or(c.owner, "buffers of the engine"), DType: c.dtype.String(), Local: dimsOf(c.dims),
		Count: c.most, Bytes: c.mostBytes, Lifetime: c.lifetime.String(),
	}
	s.Shape = s.Local
	if f, ok := e.split.of(c); ok && c.lifetime == kept && c.category == tensor.Activation {
		s.Shape, s.Split = f.shape, f.spec.String()
		s.Replication = 1
		for _, a := range []mesh.Axis{mesh.TP, mesh.CP} {
			if f.spec[a].Kind != mesh.Sharded {
				s.Replication *= e.mesh.Degree(a)
			}
		}
	}
	return s
}

// zeroed tells whether ZeRO shards a category.
func (e *explainer) zeroed(c tensor.Category) bool {
	stage := e.plan.Layout.Zero.Stage
	switch c {
	case tensor.Optimizer:
		return stage >= plan.ShardOptimizer
	case tensor.Gradient:
		return stage >= plan.ShardGradients
	case tensor.Parameter:
		return stage >= plan.ShardParameters
	case tensor.Activation, tensor.Communication, tensor.Workspace, tensor.KVCache:
	}
	return false
}

// flatSplit says how the flat tensors of a category lie.
func (e *explainer) flatSplit(c tensor.Category) string {
	if n := e.shards(c, mesh.DenseData); n > 1 {
		return fmt.Sprintf("as the parameters; ZeRO over %d", n)
	}
	return "as the parameters"
}

// flatReplication is how many ranks hold the same dense state.
func (e *explainer) flatReplication(c tensor.Category) int {
	return e.mesh.Size(mesh.DenseData) / e.shards(c, mesh.DenseData)
}

// dimsOf is the sizes without the unused ones.
func dimsOf(dims [tensor.MaxDims]int) []int {
	n := len(dims)
	for n > 0 && dims[n-1] == 0 {
		n--
	}
	return slices.Clone(dims[:n])
}

// byCategory is a usage by name, without what is 0.
func byCategory(u tensor.Usage) map[string]unit.Bytes {
	out := map[string]unit.Bytes{}
	for _, c := range tensor.Categories() {
		if b := u.Of(c); b > 0 {
			out[c.String()] = b
		}
	}
	return out
}
