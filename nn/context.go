package nn

import (
	"fmt"

	"carve/comm"
	"carve/mesh"
	"carve/model"
	"carve/tensor"
)

// Context says how attention works where the positions of a sequence are split over the context axis. The zero value
// is a ring over zigzag pieces.
type Context struct {
	Kind    ContextKind
	Balance mesh.Balance
}

// ContextKind is how a rank's queries reach the keys and values of the other context ranks. See the package's
// documentation for what each moves and holds.
type ContextKind uint8

// The kinds.
const (
	// ContextRing passes blocks of keys and values around, the next one while the current one is used. A rank holds two
	// blocks at a time.
	ContextRing ContextKind = iota
	// ContextAllGather collects all keys and values at once: one collective instead of CP-1 transfers, and CP times the
	// memory.
	ContextAllGather
	// ContextAllToAll exchanges heads for positions and back (Ulysses). It moves less than the others when CP is above
	// 1+A/K, nothing is hidden, and CP must divide this rank's query heads.
	ContextAllToAll
)

// String is the name in plan files.
func (k ContextKind) String() string {
	switch k {
	case ContextRing:
		return "ring"
	case ContextAllGather:
		return "all-gather"
	case ContextAllToAll:
		return "all-to-all"
	}
	return fmt.Sprintf("context(%d)", uint8(k))
}

// checkContext lists what does not fit the context axis.
func checkContext(r *Rank, c model.Config, o Options) (faults []error) {
	cp, tp := r.mesh().Degree(mesh.CP), r.mesh().Degree(mesh.TP)
	if cp == 1 {
		return nil
	}
	if pieces := r.Context.Balance.Pieces(cp); o.Sequence%pieces != 0 {
		faults = append(faults, fmt.Errorf("nn: sequence %d does not split into the %d %v pieces of context degree %d; use a multiple of %d",
			o.Sequence, pieces, r.Context.Balance, cp, pieces))
	}
	shape := ContextShape{Degree: cp, Heads: c.Heads / tp, KeyHeads: max(c.KVHeads/tp, 1)}
	if !shape.Legal(r.Context.Kind) {
		faults = append(faults, fmt.Errorf("nn: context degree %d does not split the %d heads and %d key-value heads of a rank for all-to-all; use ring or all-gather",
			cp, shape.Heads, shape.KeyHeads))
	}
	return faults
}

// sequences knows which positions every rank of the context axis has. The blocks of a model share one.
type sequences struct {
	balance   mesh.Balance
	degree    int
	at        int            // this rank's coordinate
	length    int            // S, of whole sequences
	positions *tensor.Tensor // int32 [CP S/CP]
}

func newSequences(r *Rank) *sequences {
	return &sequences{balance: r.Context.Balance, degree: degree(r.Groups.Context), at: position(r.Groups.Context)}
}

// ready makes the table for the batch's length of sequence.
func (q *sequences) ready(r *Rank, b *Batch) {
	if b.Positions == nil {
		panic("nn: a batch over the context axis needs positions")
	}
	s := b.sequence() * q.degree
	if q.length == s {
		return
	}
	q.positions.Free()
	q.length = s
	q.positions = r.Arena.New(tensor.Workspace, tensor.Int32, q.degree, b.sequence())
	all := q.positions.I32()
	for owner := 0; len(all) > 0; owner++ {
		q.balance.Positions(all[:b.sequence()], s, q.degree, owner)
		all = all[b.sequence():]
	}
}

// order is how the rows of a batch of every rank of the context axis lie.
type order uint8

const (
	byRank     order = iota // [CP B S/CP]
	bySequence              // [B CP S/CP]
)

// documents is the document of every row of every rank, int32; nil without documents.
func (q *sequences) documents(r *Rank, b *Batch, o order) *tensor.Tensor {
	if b.Documents == nil {
		return nil
	}
	if b.Documents.Len() != b.rows()*q.degree {
		panic(fmt.Sprintf("nn: documents %v for %d context ranks of %v; give those of whole sequences", b.Documents, q.degree, b.Tokens))
	}
	t := r.Arena.New(tensor.Workspace, tensor.Int32, b.rows()*q.degree)
	n, batch := b.sequence(), b.rows()/b.sequence()
	all, docs := t.I32(), b.Documents.I32()
	for i := range len(all) / n {
		owner, sequence := i/batch, i%batch
		if o == bySequence {
			owner, sequence = i%q.degree, i/q.degree
		}
		q.balance.Cut(all[i*n:][:n], docs[sequence*q.length:][:q.length], q.length, q.degree, owner)
	}
	return t
}

// visible tells whether a query of this rank may see a key of owner: whether, in some sequence, two of their runs of positions
// share a document and the keys do not all come later.
func (q *sequences) visible(b *Batch, owner int) bool {
	for _, queries := range q.balance.Runs(q.length, q.degree, q.at) {
		for _, keys := range q.balance.Runs(q.length, q.degree, owner) {
			if queries.Len() > 0 && keys.Len() > 0 && keys.Start < queries.Stop && q.related(b, queries, keys) {
				return true
			}
		}
	}
	return false
}

// related tells whether two runs of positions have a document in common in some sequence, going by the least and the
// largest number of each.
func (q *sequences) related(b *Batch, one, other mesh.Range) bool {
	if b.Documents == nil || b.Documents.Meta() {
		return true
	}
	for docs := b.Documents.I32(); len(docs) > 0; docs = docs[q.length:] {
		lo, hi := extent(docs[one.Start:one.Stop])
		from, to := extent(docs[other.Start:other.Stop])
		if from <= hi && lo <= to {
			return true
		}
	}
	return false
}

func extent(v []int32) (lo, hi int32) {
	lo, hi = v[0], v[0]
	for _, x := range v {
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}

// position is the rank's position in a group; a nil group has one member.
func position(g *comm.Group) int {
	if g == nil {
		return 0
	}
	return g.Rank()
}

// communication makes a tensor whose elements are sent or received.
func (r *Rank) communication(d tensor.DType, dims ...int) *tensor.Tensor {
	return r.Arena.New(tensor.Communication, d, dims...)
}
