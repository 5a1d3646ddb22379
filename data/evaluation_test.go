package data

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// evaluate reads a whole evaluation of one rank and returns its samples' first
// tokens by step.
func evaluate(t rapid.TB, e *Evaluation) (steps [][]int32) {
	t.Helper()
	s := e.opts.Sequence
	x, y := make([]int32, e.opts.Rows*s), make([]int32, e.opts.Rows*s)
	for {
		rows, err := e.Next(Batch{Tokens: x, Targets: y})
		if errors.Is(err, io.EOF) {
			return steps
		}
		if err != nil {
			t.Fatal(err)
		}
		var first []int32
		for k := range e.opts.Rows {
			row, targets := x[k*s:][:s], y[k*s:][:s]
			if k >= rows {
				if slices.Max(row) != 0 || slices.Max(targets) != NoTarget {
					t.Fatalf("padding %d with targets %d", row, targets)
				}
				continue
			}
			first = append(first, row[0])
			if targets[s-1] != row[s-1]+1 {
				t.Fatalf("targets %d of %d", targets, row)
			}
		}
		steps = append(steps, first)
	}
}

func TestEvaluationIsInOrderOnEveryLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := EvaluationOptions{
			Sequence: rapid.IntRange(1, 4).Draw(t, "sequence"),
			Rows:     rapid.IntRange(1, 4).Draw(t, "rows"),
			Ranks:    rapid.IntRange(1, 4).Draw(t, "ranks"),
			Limit:    rapid.Int64Range(0, 30).Draw(t, "limit"),
		}
		c := numbers(rapid.IntRange(o.Sequence+1, 100).Draw(t, "tokens"))
		want := c.Samples(o.Sequence)
		if o.Limit > 0 {
			want = min(want, o.Limit)
		}
		var joined [][]int32 // by step, the ranks in order
		for rank := range o.Ranks {
			o.Rank = rank
			e, err := NewEvaluation(c, o)
			if err != nil {
				t.Fatal(err)
			}
			steps := evaluate(t, e)
			e.Rewind()
			if again := evaluate(t, e); !slices.EqualFunc(steps, again, slices.Equal) {
				t.Fatal("a second time differs")
			}
			if int64(len(steps)) != e.Steps() || e.Samples() != want {
				t.Fatalf("%d steps of %d, %d samples of %d", len(steps), e.Steps(), e.Samples(), want)
			}
			if joined == nil {
				joined = make([][]int32, len(steps))
			}
			for i, s := range steps {
				joined[i] = append(joined[i], s...)
			}
		}
		var all []int32
		for _, s := range joined {
			all = append(all, s...)
		}
		if int64(len(all)) != want {
			t.Fatalf("%d samples, want %d", len(all), want)
		}
		for i, id := range all {
			spread := i * int(c.Samples(o.Sequence)) / len(all) // evenly over the whole split
			if int(id) != spread*o.Sequence {
				t.Fatalf("sample %d begins with %d, not %d", i, id, spread*o.Sequence)
			}
		}
	})
}

func TestEvaluationErrors(t *testing.T) {
	cases := []struct {
		name   string
		tokens int
		o      EvaluationOptions
		want   string
	}{
		{"no rows", 9, EvaluationOptions{Sequence: 2}, "data: evaluating 0 rows of 2 tokens, at most 0; rows and tokens must be at least 1"},
		{"rank", 9, EvaluationOptions{Sequence: 2, Rows: 1, Rank: 1}, "data: rank 1 of 1; ranks count from 0"},
		{"too short", 2, EvaluationOptions{Sequence: 2, Rows: 1}, "use a sequence of at most 1 (of the validation split, whose share may also be raised)"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := NewEvaluation(numbers(c.tokens), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
		})
	}
	e, err := NewEvaluation(numbers(9), EvaluationOptions{Sequence: 2, Rows: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Next(Batch{Tokens: make([]int32, 1), Targets: make([]int32, 2)}); err == nil || err.Error() != "data: buffers of 1 and 2 ids; a step has 1 samples of 2" {
		t.Error(err)
	}
	bad := numbers(9)
	bad.err = errors.New("disk on fire")
	if e, err = NewEvaluation(bad, EvaluationOptions{Sequence: 2, Rows: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Next(Batch{Tokens: make([]int32, 2), Targets: make([]int32, 2)}); !errors.Is(err, bad.err) {
		t.Error(err)
	}
}
