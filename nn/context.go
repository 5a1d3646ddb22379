package nn

import (
	"fmt"

	"carve/comm"
	"carve/mesh"
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
)

// String is the name in plan files.
func (k ContextKind) String() string {
	switch k {
	case ContextRing:
		return "ring"
	}
	return fmt.Sprintf("context(%d)", uint8(k))
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

// documents is the document of every row of every rank, int32 [CP B S/CP]; nil without documents.
func (q *sequences) documents(r *Rank, b *Batch) *tensor.Tensor {
	if b.Documents == nil {
		return nil
	}
	if b.Documents.Len() != b.rows()*q.degree {
		panic(fmt.Sprintf("nn: documents %v for %d context ranks of %v; give those of whole sequences", b.Documents, q.degree, b.Tokens))
	}
	t := r.Arena.New(tensor.Workspace, tensor.Int32, q.degree, b.rows())
	all := t.I32()
	for owner := 0; len(all) > 0; owner++ {
		q.balance.Cut(all[:b.rows()], b.Documents.I32(), q.length, q.degree, owner)
		all = all[b.rows():]
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
