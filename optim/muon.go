package optim

import (
	"errors"
	"math"

	"carve/nn"
	"carve/tensor"
)

// MuonOptions are the constants of Muon. Zero values mean a momentum of 0.95 and no decay.
//
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
// matrix has one owner among the data-parallel ranks at every stage, which alone keeps its momentum, updates it, and
// sends it to the others.
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
