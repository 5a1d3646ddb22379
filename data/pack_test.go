package data

import (
	"errors"
	"io"
	"testing"

	"carve/token"

	"github.com/google/go-cmp/cmp"
)

// endOfText ends every document in the tokens of token.Bytes.
const endOfText = 256

// packedTwin is what packing makes of a row of S+1 ids, by looking for the end of text.
func packedTwin(row []int32) (b Batch, targets int64) {
	document, start := int32(0), 0
	for i, id := range row[:len(row)-1] {
		if i > 0 && row[i-1] == endOfText {
			document, start = document+1, i
		}
		target := row[i+1]
		if id == endOfText {
			target = NoTarget
		} else {
			targets++
		}
		b.Tokens, b.Targets = append(b.Tokens, id), append(b.Targets, target)
		b.Positions, b.Documents = append(b.Positions, int32(i-start)), append(b.Documents, document)
	}
	return b, targets
}

// newBatch makes buffers with old numbers in them.
func newBatch(n int) Batch {
	dirty := func() []int32 {
		v := make([]int32, n)
		fill(v, 77)
		return v
	}
	return Batch{dirty(), dirty(), dirty(), dirty()}
}

// packable is tokens in several shards with documents of a few tokens.
func packable(t testing.TB) *Tokens {
	t.Helper()
	s := open(t, tree(t, manyFiles(40)), SourceOptions{})
	return smallBuilder(t, s, token.Bytes{}, PrepareOptions{}).mustBuild(t).Train
}

// TestPackingEqualsItsTwin compares every buffer of some steps on two ranks, read at once and ahead, with what the twin
// makes of the plain samples.
func TestPackingEqualsItsTwin(t *testing.T) {
	c := packable(t)
	const sequence, batch = 23, 5
	o := LoaderOptions{Sequence: sequence, GlobalBatch: batch, Ranks: 2, Seed: 1}
	plain := loader(t, c, LoaderOptions{Sequence: sequence, GlobalBatch: batch, Seed: 1})
	o.Packing = ByDocument
	var ranks [2]*Loader
	for i := range ranks {
		o.Rank = i
		ranks[i] = loader(t, c, o)
		if i == 1 {
			if err := ranks[i].Start(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			defer ranks[i].Close()
		}
	}
	for range 30 {
		whole, want, got := newBatch(batch*sequence), Batch{}, Batch{}
		if _, err := plain.Next(t.Context(), whole); err != nil {
			t.Fatal(err)
		}
		if plain.Targets() != batch*sequence {
			t.Fatalf("%d targets without packing", plain.Targets())
		}
		count := int64(0)
		for k := range batch {
			one := whole.part(k, k+1, sequence)
			twin, n := packedTwin(append([]int32{one.Tokens[0]}, one.Targets...))
			want, count = join(want, twin), count+n
		}
		for _, l := range ranks {
			mine := newBatch(l.Rows() * sequence)
			if _, err := l.Next(t.Context(), mine); err != nil {
				t.Fatal(err)
			}
			if l.Targets() != count {
				t.Fatalf("%d targets in the step, want %d", l.Targets(), count)
			}
			got = join(got, mine)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

func join(a, b Batch) Batch {
	return Batch{
		append(a.Tokens, b.Tokens...), append(a.Targets, b.Targets...),
		append(a.Positions, b.Positions...), append(a.Documents, b.Documents...),
	}
}

// TestPackingSeesSeams is the negative control of the twin: joined samples differ from packed ones in targets, positions and
// documents, and in nothing else.
func TestPackingSeesSeams(t *testing.T) {
	c := packable(t)
	read := func(p Packing) Batch {
		b := newBatch(4 * 23)
		if _, err := loader(t, c, LoaderOptions{Sequence: 23, GlobalBatch: 4, Packing: p}).Next(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	joined, packed := read(Joined), read(ByDocument)
	if cmp.Equal(joined.Targets, packed.Targets) || cmp.Equal(joined.Positions, packed.Positions) || cmp.Equal(joined.Documents, packed.Documents) {
		t.Error("packing changes nothing")
	}
	if diff := cmp.Diff(joined.Tokens, packed.Tokens); diff != "" {
		t.Error(diff)
	}
}

func TestPackedEvaluation(t *testing.T) {
	c := packable(t)
	const sequence = 23
	o := EvaluationOptions{Sequence: sequence, Rows: 3, Limit: 4}
	plain, err := NewEvaluation(c, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Packing = ByDocument
	packed, err := NewEvaluation(c, o)
	if err != nil {
		t.Fatal(err)
	}
	for {
		whole, got, want := newBatch(3*sequence), newBatch(3*sequence), Batch{}
		rows, err := plain.Next(whole)
		if same, other := packed.Next(got); same != rows || !errors.Is(other, err) {
			t.Fatalf("%d rows, %v; want %d, %v", same, other, rows, err)
		}
		if errors.Is(err, io.EOF) {
			return
		}
		for k := range rows {
			one := whole.part(k, k+1, sequence)
			twin, _ := packedTwin(append([]int32{one.Tokens[0]}, one.Targets...))
			want = join(want, twin)
		}
		if diff := cmp.Diff(want, got.part(0, rows, sequence)); diff != "" {
			t.Fatal(diff)
		}
		for _, v := range got.part(rows, 3, sequence).Targets {
			if v != NoTarget {
				t.Fatalf("a row without a sample has target %d", v)
			}
		}
	}
}

func TestPackingErrors(t *testing.T) {
	const remedy = "data: this corpus does not know where documents begin; use packing none"
	if _, err := NewLoader(numbers(50), LoaderOptions{Sequence: 4, GlobalBatch: 1, Packing: ByDocument}); err == nil || err.Error() != remedy {
		t.Error(err)
	}
	if _, err := NewEvaluation(numbers(50), EvaluationOptions{Sequence: 4, Rows: 1, Packing: ByDocument}); err == nil || err.Error() != remedy {
		t.Error(err)
	}
	c := packable(t)
	l := loader(t, c, LoaderOptions{Sequence: 4, GlobalBatch: 2, Packing: ByDocument})
	b := newBatch(8)
	b.Positions = b.Positions[:7]
	if _, err := l.Next(t.Context(), b); err == nil || err.Error() != "data: buffers of 7 positions and 8 documents; a step has 2 samples of 4" {
		t.Error(err)
	}
	if err := c.Number(make([]int32, 5), 1<<40); err == nil {
		t.Error("a sample that does not exist has numbers")
	}
	if _, err := c.Targets(1<<40, 4); err == nil {
		t.Error("a sample that does not exist has targets")
	}
	if n := testing.AllocsPerRun(50, func() {
		b := Batch{b.Tokens, b.Targets, nil, b.Documents}
		if _, err := l.Next(t.Context(), b); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// TestRawTokensAreOneDocument: files of bare ids do not tell where documents begin.
func TestRawTokensAreOneDocument(t *testing.T) {
	path := t.TempDir() + "/x.bin"
	raw(t, path, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	ds, err := OpenShards(path, ShardOptions{Format: Uint16, Vocab: 10})
	if err != nil {
		t.Fatal(err)
	}
	cleanup(t, ds)
	l := loader(t, ds.Train, LoaderOptions{Sequence: 4, GlobalBatch: 2, Packing: ByDocument})
	b := newBatch(8)
	if _, err := l.Next(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int32{0, 1, 2, 3, 0, 1, 2, 3}, b.Positions); diff != "" || l.Targets() != 8 {
		t.Error(diff, l.Targets())
	}
}
