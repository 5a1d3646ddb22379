package optim

import (
	"errors"
	"math"
	"slices"

	"carve/comm"
	"carve/mesh"
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
// sends it to the others. Parts of a matrix that the tensor axis splits stay where they are: its ranks sum small squares.
type MuonOptions struct {
	Momentum float64
	Decay    float64      // of the parameters whose Decay is set
	Rest     AdamWOptions // of what Muon does not treat
}

func (o MuonOptions) check(r *nn.Rank, all Options) error {
	if all.Stage > Replicated && all.Ownership == Flat && size(r.Groups.Data) > 1 {
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
	dev.Scale(s.grad, c.scale)
	dev.Scale(momentum, o.Momentum)
	dev.Add(momentum, s.grad)
	u := r.Arena.New(tensor.Workspace, wide(r.DType), momentum.Dim(0), momentum.Dim(1))
	dev.Copy(u, momentum)
	dev.Scale(u, o.Momentum)
	dev.Add(u, s.grad)
	u, factor := orthogonal(r, u, shareOf(r, s.whole))
	dev.Scale(u, -c.rate*0.2*math.Sqrt(float64(slices.Max(s.whole.Shape)))*factor)
	if s.decay && o.Decay != 0 {
		dev.Scale(s.master, 1-c.rate*o.Decay)
	}
	dev.Add(s.master, u)
	u.Free()
	if p := s.copyOut(); p != nil {
		dev.Copy(p, s.master)
	}
}

// share is the part of a matrix that a rank of the tensor axis has.
type share struct {
	group  *comm.Group // ranks with the other parts; nil for a whole matrix
	copies int         // of each part in the group
	tall   bool        // the square is zᵀ·z, not z·zᵀ
}

// shareOf is this rank's part of a matrix. Of parts of rows z_r the square zᵀ·z is the sum of z_rᵀ·z_r, of parts of
// columns z·zᵀ is; a whole matrix has the smaller one.
func shareOf(r *nn.Rank, p *nn.Param) share {
	at, degree := p.Spec[mesh.TP], size(r.Groups.Tensor)
	if degree == 1 || at.Kind != mesh.Sharded {
		return share{copies: 1, tall: p.Shape[0] > p.Shape[1]}
	}
	parts := at.Parts
	if parts == 0 {
		parts = degree
	}
	return share{r.Groups.Tensor, degree / parts, at.Dim == 0}
}

// sum adds t over the parts.
func (h share) sum(r *nn.Rank, t *tensor.Tensor) {
	if h.group == nil {
		return
	}
	nn.Must(h.group.AllReduce(t, tensor.Sum))
	if h.copies > 1 {
		r.Dev.Scale(t, 1/float64(h.copies))
	}
}

// squaredNorm is that of the matrix of which u is a part.
func (h share) squaredNorm(r *nn.Rank, u *tensor.Tensor) float64 {
	n := r.Dev.SquaredNorm(u)
	if h.group == nil {
		return n
	}
	t := r.Arena.New(tensor.Workspace, tensor.FP64, 1)
	defer t.Free()
	r.Dev.Fill(t, n)
	h.sum(r, t)
	if !t.Meta() {
		n = t.F64()[0]
	}
	return n
}

// orthogonal takes over u, this rank's part of a matrix, and returns x and a factor such that factor·x is its part of one
// that has the matrix's singular vectors and singular values near 1: five iterations of
// x ← a·x + b·(x·xᵀ)·x + c·(x·xᵀ)²·x from u/‖u‖. The coefficients are Jordan's, which bring values between 0.01 and 1 to
// between 0.7 and 1.2. Ranks with other parts sum nothing but the square, once an iteration.
//
// The device has no a·x + y, so a is kept out of the matrix: with x = s·z the iteration is
// z ← z + (b·s²/a·z·zᵀ + c·s⁴/a·(z·zᵀ)²)·z, s ← a·s.
func orthogonal(r *nn.Rank, u *tensor.Tensor, h share) (x *tensor.Tensor, factor float64) {
	const (
		iterations = 5
		a, b, c    = 3.4445, -4.7750, 2.0315
		tiny       = 1e-20 // for a gradient of zeros
	)
	dev := r.Dev
	n := u.Dim(0)
	if h.tall {
		n = u.Dim(1)
	}
	dev.Scale(u, 1/(math.Sqrt(h.squaredNorm(r, u))+tiny))
	square := r.Arena.New(tensor.Workspace, u.DType(), n, n)
	fourth := r.Arena.New(tensor.Workspace, u.DType(), n, n)
	next := r.Arena.New(tensor.Workspace, u.DType(), u.Dim(0), u.Dim(1))
	s := 1.0
	for range iterations {
		dev.MatMul(tensor.MatMul{C: square, A: u, B: u, TransA: h.tall, TransB: !h.tall})
		h.sum(r, square)
		dev.MatMul(tensor.MatMul{C: fourth, A: square, B: square})
		dev.Scale(square, b*s*s/a)
		dev.Scale(fourth, c*s*s*s*s/a)
		dev.Add(square, fourth)
		if h.tall {
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
