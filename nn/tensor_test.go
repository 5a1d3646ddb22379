package nn_test

import (
	"fmt"
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/model"
	"carve/nn"
	"carve/tensor"
	"carve/unit"
)

// tensorLayout is a layout of the tensor axis.
type tensorLayout struct {
	tp, dp, cp int
	rows       bool // sequence parallelism
	chunks     int
	kind       nn.TensorKind
}

func (l tensorLayout) String() string {
	return fmt.Sprintf("%v,tp=%d,dp=%d,cp=%d,sp=%v,chunks=%d", l.kind, l.tp, l.dp, l.cp, l.rows, l.chunks)
}

// layout is l with a further change to every rank, or none.
func (l tensorLayout) layout(change func(*nn.Rank, comm.Endpoint)) layout {
	return layout{
		degrees: mesh.Degrees{mesh.TP: l.tp, mesh.DP: l.dp, mesh.CP: l.cp}, dtype: tensor.FP64,
		plant: func(r *nn.Rank, e comm.Endpoint) {
			r.SequenceParallel, r.Chunks, r.TensorKind = l.rows, l.chunks, l.kind
			if change != nil {
				change(r, e)
			}
		},
	}
}

// tensorJob has 21 rows over a vocabulary of 19, which no degree divides, and eight query heads to two key-value
// heads.
func tensorJob() job {
	c := change(llama(), func(c *model.Config) {
		c.Architecture, c.QKNorm, c.Bias.QKV = model.Qwen3, model.HeadQKNorm, true
		c.Heads, c.KVHeads = 8, 2
	})
	return job{config: c, sequences: 3, length: 7}
}

// TestTensorEqualsOneRank is the proof of the tensor axis: with and without sequence parallelism and chunks, with rows and
// a vocabulary that do not divide, with several key-value heads a rank, one, and one that several ranks hold.
func TestTensorEqualsOneRank(t *testing.T) {
	j := tensorJob()
	want := j.run(t, alone())
	for _, tp := range []int{2, 4, 8} {
		for _, rows := range []bool{false, true} {
			for _, chunks := range []int{0, 3} {
				l := tensorLayout{tp: tp, rows: rows, chunks: chunks}
				if racing && (tp != 4 || chunks == 0) {
					continue
				}
				if worst, where := j.run(t, l.layout(nil)).distance(want); worst > meshTolerance {
					t.Errorf("%v: %s differs from one rank by %.1e", l, where, worst)
				}
			}
		}
	}
}

// TestTensorFamilies runs every kind of model: biases that are split and that are not, position tables, tied embeddings.
func TestTensorFamilies(t *testing.T) {
	for _, f := range families() {
		j := job{config: f.config, sequences: 2, length: 7, documents: halves}
		l := tensorLayout{tp: 2}
		if f.config.Heads%2 != 0 {
			l.tp = 3
			j.config.FFN = 21
		}
		j.compareWithOne(t, l.layout(nil))
		if f.config.Experts.Count == 0 {
			l.kind = nn.TensorGathered
			j.compareWithOne(t, l.layout(nil))
		}
		l.kind, l.rows = nn.TensorMegatron, true
		j.compareWithOne(t, l.layout(nil))
		l.dp = 2
		j.compareWithOne(t, l.layout(nil))
	}
}

// TestTensorWithContext runs both axes that split rows: the context axis has its positions of every sequence, and the tensor
// axis blocks of these rows.
func TestTensorWithContext(t *testing.T) {
	j := contextJob()
	j.documents = halves
	j.compareWithOne(t, tensorLayout{tp: 2, cp: 2, rows: true}.layout(nil))
	j.compareWithOne(t, tensorLayout{tp: 8, cp: 2, rows: true, chunks: 2}.layout(nil))
}

// TestGathered runs the baseline with every other axis and with dropout, whose masks are those of all heads.
func TestGathered(t *testing.T) {
	j := contextJob()
	j.documents = halves
	j.compareWithOne(t, tensorLayout{kind: nn.TensorGathered, tp: 4, rows: true}.layout(nil)) // rows are not split
	j.compareWithOne(t, tensorLayout{kind: nn.TensorGathered, tp: 2, cp: 2, dp: 2, chunks: 3}.layout(nil))
	dropoutJob().compareWithOne(t, tensorLayout{kind: nn.TensorGathered, tp: 2}.layout(nil))
}

// TestGatheredPrice counts what the baseline costs: a collective more in each branch and direction, and activations that every
// rank repeats.
func TestGatheredPrice(t *testing.T) {
	j := tensorJob()
	type price struct {
		calls int
		bytes unit.Bytes // of activations at the end of the forward
	}
	measure := func(kind nn.TensorKind) (p price) {
		var workers []*worker
		counter := &counted{}
		l := tensorLayout{kind: kind, tp: 2}.layout(func(r *nn.Rank, e comm.Endpoint) {
			if e.Rank() == 0 {
				counter.Carrier = r.Groups.Tensor.Carrier()
				r.Groups.Tensor = r.Groups.Tensor.With(counter)
			}
		})
		err := j.each(t, l, func(w *worker) {
			before := w.r.Arena.Live()[tensor.Activation]
			p := w.m.Forward(w.r, w.b)
			kept := w.r.Arena.Live()[tensor.Activation] - before
			w.m.Begin()
			w.m.Backward(w.r, p, everything{})
			if w.r.At[mesh.TP] == 0 {
				counter.bytes = kept
			}
		}, &workers)
		if err != nil {
			t.Fatal(err)
		}
		return price{counter.calls, counter.bytes}
	}
	split, gathered := measure(nn.TensorMegatron), measure(nn.TensorGathered)
	const branches, directions = 4, 2
	if got, want := gathered.calls-split.calls, branches*directions; got != want {
		t.Errorf("gathered makes %d calls more, want %d", got, want)
	}
	if gathered.bytes <= split.bytes {
		t.Errorf("gathered keeps %v, megatron %v", gathered.bytes, split.bytes)
	}
}

// TestTensorSaves holds what of a micro-batch waits for the backward to the closed form: sequence parallelism divides by TP
// what tensor parallelism leaves whole (Korthikanti et al., arXiv 2205.05198, section 4).
func TestTensorSaves(t *testing.T) {
	j := tensorJob()
	j.config = change(j.config, func(c *model.Config) { c.QKNorm, c.Layers = model.NoQKNorm, 3 })
	j.sequences, j.length = 2, 8
	c := j.config
	const tp, rows = 4, 16
	kv := c.HeadDim // one head of each
	split := (2*c.Heads*c.HeadDim+2*c.FFN+c.Heads)/tp + 2*kv
	for _, l := range []struct {
		rows bool
		kept int // per row of a rank's residual stream, beside what is split
	}{{false, rows}, {true, rows / tp}} {
		want := c.Layers*(rows*split+l.kept*(2*c.Hidden+2)) + l.kept*c.Hidden
		var workers []*worker
		err := j.each(t, tensorLayout{tp: tp, rows: l.rows}.layout(nil), func(w *worker) {
			p := w.m.Forward(w.r, w.b)
			if got := int(w.r.Arena.Live().Of(tensor.Activation)) / tensor.FP64.Size(); got != want {
				t.Errorf("sp %v: %d elements are kept, want %d", l.rows, got, want)
			}
			p.Free()
		}, &workers)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// counted is a carrier that counts calls.
type counted struct {
	comm.Carrier
	calls int
	bytes unit.Bytes
}

func (c *counted) Do(call comm.Call) error {
	c.calls++
	return c.Carrier.Do(call)
}

// TestTensorManyChunksOfLogits has 140 rows, so that the head works in three pieces, also of uneven blocks, and where
// its backward is put off.
func TestTensorManyChunksOfLogits(t *testing.T) {
	j := tensorJob()
	j.sequences, j.length = 20, 7
	for _, o := range []nn.Options{{Logits: 1}, {Logits: 1, Head: nn.Split}} {
		if racing && o.Head == nn.Split {
			continue
		}
		j.options = o
		for _, tied := range []bool{false, true} {
			j.config.TieEmbeddings = tied
			if !racing {
				j.compareWithOne(t, tensorLayout{tp: 8, rows: true}.layout(nil))
			}
			j.compareWithOne(t, tensorLayout{tp: 4, chunks: 2, rows: true}.layout(nil))
		}
	}
}

// TestTensorFewRows has fewer rows than ranks: some have none.
func TestTensorFewRows(t *testing.T) {
	j := tensorJob()
	j.sequences, j.length = 1, 3
	for _, chunks := range []int{1, 5} {
		j.compareWithOne(t, tensorLayout{tp: 4, rows: true, chunks: chunks}.layout(nil))
		j.compareWithOne(t, tensorLayout{tp: 4, chunks: chunks}.layout(nil))
	}
}

// TestChunksGiveTheSameBits compares with the product that is computed and summed at once.
func TestChunksGiveTheSameBits(t *testing.T) {
	j := tensorJob()
	j.sequences = 8
	for _, rows := range []bool{false, true} {
		l := tensorLayout{tp: 4, rows: rows}
		want := j.run(t, narrow(l.layout(nil)))
		l.chunks = 4
		if worst, where := j.run(t, narrow(l.layout(nil))).distance(want); worst != 0 {
			t.Errorf("%v: %s differs by %.1e", l, where, worst)
		}
	}
}

func narrow(l layout) layout {
	l.dtype = tensor.FP32
	return l
}
