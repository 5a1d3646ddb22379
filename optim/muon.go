package optim

import (
	"errors"
	"math"
	"slices"

	"carve/comm"
	"carve/nn"
	"carve/tensor"
)

// MuonOptions are the constants of Muon. Zero values mean a momentum of 0.95 and no decay.
type MuonOptions struct {
	Momentum float64
	Decay    float64      // of the parameters whose Decay is set
	Rest     AdamWOptions // of what Muon does not treat
}

func (o MuonOptions) check(r *nn.Rank, all Options) error {
	switch {
	case size(r.Groups.Tensor) > 1:
		return errors.New("optim: muon needs whole matrices, but the tensor axis splits them; use tp 1 or adamw")
	case all.Stage > Replicated && all.Ownership == Flat:
		return errors.New("optim: muon needs whole matrices, but they are dealt out in ranges; use ownership tensor or adamw")
	}
	return nil
}

func (o MuonOptions) whole(p *nn.Param) bool { return p.Kind == nn.Matrix }

func (o MuonOptions) kinds(p *nn.Param) []StateKind {
	if o.whole(p) {
		return []StateKind{Momentum}
	}
	return o.Rest.kinds(p)
}

func (o MuonOptions) update(r *nn.Rank, s *slot, c change) {
	if s.whole == nil {
		o.Rest.update(r, s, c)
		return
	}
	if o.Momentum == 0 {
		o.Momentum = 0.95
	}
	dev, momentum := r.Dev, s.moments[0]
	out, in := momentum.Dim(0), momentum.Dim(1)
	dev.Scale(s.grad, c.scale)
	dev.Scale(momentum, o.Momentum)
	dev.Add(momentum, s.grad)
	u := r.Arena.New(tensor.Workspace, wide(r.DType), out, in)
	dev.Copy(u, momentum)
	dev.Scale(u, o.Momentum)
	dev.Add(u, s.grad)
	u, factor := orthogonal(r, u)
	dev.Scale(u, -c.rate*0.2*math.Sqrt(float64(max(out, in)))*factor)
	if s.decay && o.Decay != 0 {
		dev.Scale(s.master, 1-c.rate*o.Decay)
	}
	dev.Add(s.master, u)
	u.Free()
	if p := s.copyOut(); p != nil {
		dev.Copy(p, s.master)
	}
}

// Muon replaces the momentum of every hidden matrix by the nearest semi-orthogonal matrix (Jordan et al. 2024), and treats
// tables, head and vectors with AdamW. For a matrix [out in] with gradient g:
//
//	m = μ·m + g;  u = g + μ·m;  O = NewtonSchulz(u/‖u‖)
//	p -= rate·(0.2·√max(out, in)·O + decay·p)
//
// The factor gives the update the root mean square of AdamW's (Liu et al., arXiv 2502.16982), so that one learning
// rate serves both.
//
// Newton-Schulz needs whole matrices and costs as much as a few dozen rows of the batch per row of the matrix. So each
// matrix has one owner among the data-parallel ranks, which alone keeps its momentum, updates it, and broadcasts it.
type Muon struct {
	r        *nn.Rank
	group    *comm.Group
	options  MuonOptions
	rest     *AdamW
	matrices []ownedMatrix
	works    []comm.Work
	states   []Entry
}

// ownedMatrix is a hidden matrix; memory is nil on ranks that do not own it.
type ownedMatrix struct {
	param    *nn.Param
	owner    int
	momentum *tensor.Tensor // full precision
	master   *tensor.Tensor // the parameter itself unless that is bf16
}

// NewMuon makes the optimizer of a model, which must have its values. Matrices must be whole: the tensor axis must be 1.
func NewMuon(r *nn.Rank, m *nn.Model, o MuonOptions) (*Muon, error) {
	if r.Groups.Tensor != nil && r.Groups.Tensor.Size() > 1 {
		return nil, errors.New("optim: muon needs whole matrices, but the tensor axis splits them; use tp 1 or adamw")
	}
	if o.Momentum == 0 {
		o.Momentum = 0.95
	}
	a := &Muon{
		r: r, group: r.Groups.Data, options: o,
		rest: newAdamW(r, m, o.Rest, func(p *nn.Param) bool { return p.Kind != nn.Matrix }),
	}
	for _, p := range m.Params() {
		if p.Kind == nn.Matrix {
			a.matrices = append(a.matrices, ownedMatrix{param: p})
		}
	}
	a.share()
	for i := range a.matrices {
		a.remember(&a.matrices[i])
	}
	a.works = make([]comm.Work, 0, len(a.matrices))
	a.states = append(a.states, a.rest.States()...)
	return a, nil
}

// share gives every matrix an owner: the largest first, each to the rank with the least work so far. Every rank comes
// to the same result.
func (a *Muon) share() {
	ranks := 1
	if a.group != nil {
		ranks = a.group.Size()
	}
	order := make([]int, len(a.matrices))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return orthogonalWork(a.matrices[j].param) - orthogonalWork(a.matrices[i].param)
	})
	load := make([]int, ranks)
	for _, i := range order {
		least := 0
		for rank, l := range load {
			if l < load[least] {
				least = rank
			}
		}
		a.matrices[i].owner = least
		load[least] += orthogonalWork(a.matrices[i].param)
	}
}

// orthogonalWork is proportional to the FLOPs of one Newton-Schulz iteration.
func orthogonalWork(p *nn.Param) int {
	small, large := min(p.Shape[0], p.Shape[1]), max(p.Shape[0], p.Shape[1])
	return small * small * (2*large + small)
}

// mine tells whether this rank owns a matrix.
func (a *Muon) mine(x *ownedMatrix) bool { return a.group == nil || a.group.Rank() == x.owner }

// remember makes the owner's memory of a matrix.
func (a *Muon) remember(x *ownedMatrix) {
	if !a.mine(x) {
		return
	}
	shape := x.param.Shape
	x.momentum = a.r.Arena.New(tensor.Optimizer, wide(a.r.DType), shape...)
	a.r.Dev.Fill(x.momentum, 0)
	x.master = x.param.Value
	if a.r.DType == tensor.BF16 {
		x.master = a.r.Arena.New(tensor.Optimizer, tensor.FP32, shape...)
		a.r.Dev.Copy(x.master, x.param.Value)
		a.states = append(a.states, Entry{x.param, Master, x.master})
	}
	a.states = append(a.states, Entry{x.param, Momentum, x.momentum})
}

// Step implements [Optimizer].
func (a *Muon) Step(rate, scale float64) {
	for i := range a.matrices {
		x := &a.matrices[i]
		if a.mine(x) {
			a.update(x, rate, scale)
		}
		a.broadcast(x)
	}
	a.rest.Step(rate, scale)
	a.wait()
}

// broadcast starts to send a matrix from its owner to all.
func (a *Muon) broadcast(x *ownedMatrix) {
	if a.group != nil && a.group.Size() > 1 {
		a.works = append(a.works, a.group.BroadcastStart(x.param.Value, x.owner))
	}
}

func (a *Muon) wait() {
	for _, w := range a.works {
		nn.Must(w.Wait())
	}
	a.works = a.works[:0]
}

// update makes one step of a matrix of this rank.
func (a *Muon) update(x *ownedMatrix, rate, scale float64) {
	dev, mu := a.r.Dev, a.options.Momentum
	out, in := x.param.Shape[0], x.param.Shape[1]
	dev.Scale(x.param.Grad, scale)
	dev.Scale(x.momentum, mu)
	dev.Add(x.momentum, x.param.Grad)
	u := a.r.Arena.New(tensor.Workspace, wide(a.r.DType), out, in)
	dev.Copy(u, x.momentum)
	dev.Scale(u, mu)
	dev.Add(u, x.param.Grad)
	u, factor := orthogonal(a.r, u)
	dev.Scale(u, -rate*0.2*math.Sqrt(float64(max(out, in)))*factor)
	if x.param.Decay && a.options.Decay != 0 {
		dev.Scale(x.master, 1-rate*a.options.Decay)
	}
	dev.Add(x.master, u)
	u.Free()
	if x.master != x.param.Value {
		dev.Copy(x.param.Value, x.master)
	}
}

// orthogonal takes over u [m n] and returns x and a factor such that factor·x has u's singular vectors and singular values
// near 1: five iterations of x ← a·x + b·(x·xᵀ)·x + c·(x·xᵀ)²·x from u/‖u‖. The coefficients are Jordan's, which bring
// values between 0.01 and 1 to between 0.7 and 1.2.
//
// The device has no a·x + y, so a is kept out of the matrix: with x = s·z the iteration is
// z ← z + (b·s²/a·z·zᵀ + c·s⁴/a·(z·zᵀ)²)·z, s ← a·s.
func orthogonal(r *nn.Rank, u *tensor.Tensor) (x *tensor.Tensor, factor float64) {
	const (
		iterations = 5
		a, b, c    = 3.4445, -4.7750, 2.0315
		tiny       = 1e-20 // for a gradient of zeros
	)
	dev := r.Dev
	tall := u.Dim(0) > u.Dim(1) // then the small square is zᵀ·z
	n := min(u.Dim(0), u.Dim(1))
	dev.Scale(u, 1/(math.Sqrt(dev.SquaredNorm(u))+tiny))
	square := r.Arena.New(tensor.Workspace, u.DType(), n, n)
	fourth := r.Arena.New(tensor.Workspace, u.DType(), n, n)
	next := r.Arena.New(tensor.Workspace, u.DType(), u.Dim(0), u.Dim(1))
	s := 1.0
	for range iterations {
		dev.MatMul(tensor.MatMul{C: square, A: u, B: u, TransA: tall, TransB: !tall})
		dev.MatMul(tensor.MatMul{C: fourth, A: square, B: square})
		dev.Scale(square, b*s*s/a)
		dev.Scale(fourth, c*s*s*s*s/a)
		dev.Add(square, fourth)
		if tall {
			dev.MatMul(tensor.MatMul{C: next, A: u, B: square, Residual: u})
		} else {
			dev.MatMul(tensor.MatMul{C: next, A: square, B: u, Residual: u})
		}
		u, next = next, u
		s *= a
	}
	square.Free()
	fourth.Free()
	next.Free()
	return u, s
}

// Steps implements [Optimizer].
func (a *Muon) Steps() int { return a.rest.Steps() }

// States implements [Optimizer]. A matrix's state is on its owner only.
func (a *Muon) States() []Entry { return a.states }

// Restore implements [Optimizer].
func (a *Muon) Restore(steps int) {
	a.rest.Restore(steps)
	for i := range a.matrices {
		if x := &a.matrices[i]; a.mine(x) && x.master != x.param.Value {
			a.r.Dev.Copy(x.param.Value, x.master)
		}
		a.broadcast(&a.matrices[i])
	}
	a.wait()
}
