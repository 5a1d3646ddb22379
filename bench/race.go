package main

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// contender is one way to do the work. run does it once and returns one number for each quantity of the race.
type contender struct {
	name string
	side side
	run  func(context.Context) ([]float64, error)
}

// side says for whom a contender races.
type side int

const (
	theirs side = iota
	ours
)

// series is what one contender reached in each round.
type series struct {
	Name   string    `json:"name"`
	Rounds []float64 `json:"rounds"`
}

func (s series) median() float64 { return median(s.Rounds) }

// better says which of two numbers wins.
type better int

const (
	higher better = iota
	lower
)

// quantity is one column of the numbers that contenders return.
type quantity struct {
	name string // what the comparison is called
	unit string
	best better
}

// comparison is a finished race: what each side reached in each round.
type comparison struct {
	Name   string   `json:"name"`
	Unit   string   `json:"unit"`
	Theirs []series `json:"theirs"`
	Ours   []series `json:"ours"`
	best   better
}

// race runs every contender once a round and returns one comparison for each quantity.
func race(ctx context.Context, rounds int, quantities []quantity, contenders []contender, progress io.Writer) ([]comparison, error) {
	values := make([][][]float64, len(contenders)) // [contender][round][quantity]
	for round := range rounds {
		for i, c := range contenders {
			got, err := c.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			if len(got) != len(quantities) {
				return nil, fmt.Errorf("%s: %d numbers for %d quantities", c.name, len(got), len(quantities))
			}
			values[i] = append(values[i], got)
			fmt.Fprintf(progress, "bench: round %d of %d: %-40s %s\n", round+1, rounds, c.name, brief(got, quantities))
		}
	}
	out := make([]comparison, len(quantities))
	for q, quantity := range quantities {
		out[q] = comparison{Name: quantity.name, Unit: quantity.unit, best: quantity.best}
		for i, c := range contenders {
			s := series{Name: c.name}
			for _, got := range values[i] {
				s.Rounds = append(s.Rounds, got[q])
			}
			if c.side == ours {
				out[q].Ours = append(out[q].Ours, s)
			} else {
				out[q].Theirs = append(out[q].Theirs, s)
			}
		}
	}
	return out, nil
}

// brief is the first quantity, for the progress line.
func brief(got []float64, quantities []quantity) string {
	return number(got[0]) + " " + quantities[0].unit
}

// winner returns the series with the best median; the first of equals.
func (c comparison) winner(of []series) series {
	return slices.MinFunc(of, func(a, b series) int {
		if wins(c.best, a.median(), b.median()) {
			return -1
		}
		if wins(c.best, b.median(), a.median()) {
			return 1
		}
		return 0
	})
}

// wins tells whether a beats b.
func wins(best better, a, b float64) bool {
	if best == lower {
		return a < b
	}
	return a > b
}

// ratio returns ours over theirs, each side's best contender: of the medians, and the lowest and highest of one round.
func (c comparison) ratio() (middle, low, high float64) {
	t, o := c.winner(c.Theirs), c.winner(c.Ours)
	each := make([]float64, len(o.Rounds))
	for r := range each {
		each[r] = o.Rounds[r] / t.Rounds[r]
	}
	return o.median() / t.median(), slices.Min(each), slices.Max(each)
}

// median returns the middle value, or the mean of the two middle ones; values are left as they are.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	if n == 0 {
		return 0
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}
