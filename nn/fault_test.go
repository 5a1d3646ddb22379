package nn_test

import (
	"testing"

	"carve/model"
	"carve/nn"
	"carve/tensor"
)

// faulty is a device that makes one mistake.
type faulty struct {
	tensor.Device
	fault string
}

// faults are mistakes that layers have made elsewhere, by the operation that makes them.
func faults() []string {
	all := []string{
		"transposed weight", "no accumulation of matrices", "no residual in forward", "no residual in backward",
		"rotated forward in backward", "attention without scale", "loss without scale", "bias gradient twice",
		"embedding gradient lost", "norm gradient lost", "activation not recomputed",
	}
	if racing {
		return all[:1]
	}
	return all
}

func (f *faulty) MatMul(op tensor.MatMul) {
	switch {
	case f.fault == "transposed weight" && op.TransB && op.B.Dim(0) == op.B.Dim(1):
		op.TransB = false
	case f.fault == "no accumulation of matrices" && op.TransA:
		op.Accumulate = false
	case f.fault == "no residual in forward":
		op.Residual = nil
	}
	f.Device.MatMul(op)
}

func (f *faulty) RMSNormBackward(op tensor.NormBackward) {
	if f.fault == "no residual in backward" {
		op.Accumulate = false
	}
	if f.fault == "norm gradient lost" {
		f.Device.Fill(op.DW, 0)
	}
	f.Device.RMSNormBackward(op)
}

func (f *faulty) Rotate(op tensor.Rotate) {
	if f.fault == "rotated forward in backward" {
		op.Inverse = false
	}
	f.Device.Rotate(op)
}

func (f *faulty) AttentionBackward(op tensor.AttentionBackward) {
	if f.fault == "attention without scale" {
		op.Forward.Scale = 1
	}
	f.Device.AttentionBackward(op)
}

func (f *faulty) LossBackward(logits, top, sum, targets *tensor.Tensor, start int, scale float64) {
	if f.fault == "loss without scale" {
		scale = 1
	}
	f.Device.LossBackward(logits, top, sum, targets, start, scale)
}

func (f *faulty) SumRows(dst, x *tensor.Tensor) {
	if f.fault == "bias gradient twice" {
		f.Device.SumRows(dst, x)
	}
	f.Device.SumRows(dst, x)
}

func (f *faulty) EmbedBackward(dtable, dy, ids *tensor.Tensor, start int) {
	if f.fault != "embedding gradient lost" {
		f.Device.EmbedBackward(dtable, dy, ids, start)
	}
}

func (f *faulty) SwiGLUBackward(dx, y, dy, x *tensor.Tensor) {
	f.Device.SwiGLUBackward(dx, y, dy, x)
	if f.fault == "activation not recomputed" {
		f.Device.Fill(y, 0)
	}
}

// TestGradientCheckCatches plants every fault and wants the check of TestModelGradient to see it, or the
// reference to differ where forward and backward are wrong alike.
func TestGradientCheckCatches(t *testing.T) {
	c := change(llama(), func(c *model.Config) { c.Bias.QKV, c.KVHeads = true, 4 })
	for _, fault := range faults() {
		t.Run(fault, func(t *testing.T) {
			r := newRank(t, tensor.FP64)
			m := newModel(t, r, c, nn.Options{Logits: 1}) // several chunks, so that matrices accumulate
			b := newBatch(r, c.Vocab, 11, 6, 1)
			want := newReference(m).loss(b)
			r.Dev = &faulty{r.Dev, fault}
			m.Evaluate(r, b)
			worst := compareGradients(r, m, b, 1)
			if worst < 1e3*numericTolerance && abs(want-b.Loss) < 1e-6 {
				t.Errorf("not caught: gradients differ by %.1e, losses by %.1e", worst, abs(want-b.Loss))
			}
		})
	}
}

func abs(v float64) float64 { return max(v, -v) }
