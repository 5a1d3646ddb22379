package nn

import (
	"math"

	"carve/tensor"
)

// admission decides which choices are carried out. Without a capacity all are.
//
// With one, an expert takes ⌈capacity·k·S/E⌉ choices of each sequence of S tokens, in the order of the tokens: what
// becomes of a token depends on those before it in its sequence and on nothing else, neither on later tokens, which a
// language model must not see, nor on who has which sequences or which part of them. Ranks that have parts of one
// sequence tell each other how many of their tokens chose each expert. The gates of what is left stay as they are.
type admission struct {
	capacity float64 // 0 for no limit
	// length is S of whole sequences, and pieces the runs of a sequence that this rank's rows have.
	length, pieces int
	rows           rowShare
	span           span // of the rows, among those of runs
	batch          *Batch
}

// admission of a batch whose rows of this rank begin at first.
func (l *MoE) admission(r *Rank, b *Batch, first int) admission {
	cp := degree(r.Groups.Context)
	a := admission{capacity: l.capacity, length: b.sequence() * cp, pieces: r.Context.Balance.Pieces(cp) / cp, rows: l.rows, batch: b}
	a.span = span{first, b.sequence() / a.pieces}
	return a
}

// room is how many choices of a sequence an expert takes.
func (a admission) room(experts, perToken int) int {
	return int(math.Ceil(a.capacity * float64(perToken*a.length) / float64(experts)))
}

// decide sets at to 0 for choices that are carried out, and to -1 for others.
func (a admission) decide(r *Rank, at *tensor.Tensor, s routes) {
	if a.capacity == 0 {
		r.Dev.Fill(at, 0)
		return
	}
	before := a.before(r, s)
	r.Dev.Admit(tensor.Admit{
		Choice: s.choice, At: at, Before: before, Room: a.room(s.scores.Cols(), s.choice.Cols()),
		First: a.span.first, Length: a.span.length,
	})
	before.Free()
}

// before is how many earlier tokens of its sequence chose each expert, for every run of positions that this rank has rows
// of, [B·pieces E].
func (a admission) before(r *Rank, s routes) *tensor.Tensor {
	runs, e := a.batch.rows()/a.span.length, s.scores.Cols()
	before := r.statistics(runs, e)
	r.Dev.Fill(before, 0)
	shared := a.rows == ownRows && degree(r.Groups.Tensor) > 1
	if !shared && degree(r.Groups.Context) == 1 {
		return before
	}
	mine := r.statistics(runs, e)
	r.Dev.Tally(tensor.Tally{
		Choice: s.choice, Scores: s.scores, Chosen: mine, First: a.span.first, Length: a.span.length,
	})
	if shared {
		a.ofTensor(r, before, mine)
	}
	if degree(r.Groups.Context) > 1 {
		a.ofContext(r, before, mine)
	}
	mine.Free()
	return before
}

// ofTensor adds to before what the earlier ranks of the tensor axis have, and makes mine the sum over the axis.
func (a admission) ofTensor(r *Rank, before, mine *tensor.Tensor) {
	g := r.Groups.Tensor
	all := r.communication(mine.DType(), g.Size(), mine.Len())
	Must(g.AllGather(all, mine))
	for i := range g.Rank() {
		r.addRow(before.View(1, before.Len()), 0, all, i)
	}
	all.Free()
	reduce(g, mine, tensor.Sum)
}

// ofContext adds to before what earlier runs have, on whatever rank of the context axis.
func (a admission) ofContext(r *Rank, before, mine *tensor.Tensor) {
	g := r.Groups.Context
	all := r.communication(mine.DType(), g.Size()*mine.Rows(), mine.Cols())
	Must(g.AllGather(all, mine))
	own := r.Context.Balance.Runs(a.length, g.Size(), g.Rank())
	for i := range g.Size() {
		other := r.Context.Balance.Runs(a.length, g.Size(), i)
		for p := range a.pieces * a.pieces {
			q, from := p/a.pieces, p%a.pieces
			for n := 0; n < mine.Rows() && other[from].Start < own[q].Start; n += a.pieces {
				r.addRow(before.View(before.Rows(), before.Cols()), n+q, all, i*mine.Rows()+n+from)
			}
		}
	}
	all.Free()
}

// addRow adds row j of src to row i of dst, a view that it frees.
func (r *Rank) addRow(dst *tensor.Tensor, i int, src *tensor.Tensor, j int) {
	to, from := dst.RowRange(i, i+1), src.RowRange(j, j+1)
	r.Dev.Add(to, from)
	for _, t := range [...]*tensor.Tensor{to, from, dst} {
		t.Free()
	}
}
