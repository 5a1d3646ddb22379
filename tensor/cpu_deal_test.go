package tensor

import (
	"fmt"
	"slices"
	"testing"
)

// choices are n·k choices of 5 experts, of which those of expert 3 are none.
func (k *kit) choices(n, perRow int) *Tensor {
	t := k.arena.New(Activation, Int32, n, perRow)
	for i := range t.I32() {
		t.I32()[i] = int32([]int{0, 1, 2, 4}[k.rng.IntN(4)])
	}
	return t
}

// TestDeal sorts by looking through all choices once for every expert.
func TestDeal(t *testing.T) {
	const experts, perRow = 5, 3
	for _, n := range []int{0, 1, 40} {
		for _, d := range []DType{FP32, FP64} {
			k := newKit(d, 1)
			choice, gate, at := k.choices(n, perRow), k.random(n, perRow), k.arena.New(Activation, Int32, n, perRow)
			for i := range at.I32() {
				at.I32()[i] = -int32(i % 7 / 6) // every seventh is left out
			}
			var from, counts, chosen []int32
			var sorted []float64
			slots := slices.Clone(at.I32())
			for e := range int32(experts) {
				count, all := int32(0), int32(0)
				for i, x := range choice.I32() {
					if x != e {
						continue
					}
					all++
					if at.I32()[i] >= 0 {
						slots[i] = int32(len(from))
						from, sorted = append(from, int32(i/perRow)), append(sorted, values(gate)[i])
						count++
					}
				}
				counts, chosen = append(counts, count), append(chosen, all)
			}
			op := Deal{
				Choice: choice, Gate: gate, At: at, From: k.arena.New(Activation, Int32, n*perRow), Sorted: k.random(n * perRow),
				Counts: k.ints(9, 9, 9, 9, 9), Chosen: k.ints(9, 9, 9, 9, 9),
			}
			k.dev.Deal(op)
			got := fmt.Sprint(at.I32(), op.From.I32()[:len(from)], values(op.Sorted)[:len(from)], op.Counts.I32(), op.Chosen.I32())
			if want := fmt.Sprint(slots, from, sorted, counts, chosen); got != want {
				t.Errorf("%d rows of %v:\n%s, want\n%s", n, d, got, want)
			}
			k.close()
		}
	}
}

// TestAdmit and Tally count by looking back from every choice.
func TestAdmit(t *testing.T) {
	const experts, perRow, first, length, room = 5, 2, 1, 4, 2
	for _, d := range []DType{FP32, FP64} {
		k := newKit(d, 1)
		const n = 10 // rows of runs 0, 1 and 2
		choice, at, before := k.choices(n, perRow), k.arena.New(Activation, Int32, n, perRow), k.random(3, experts)
		for i := range before.Len() {
			setValues(before.Slice(i, i+1), []float64{float64(i % 3)})
		}
		earlier := values(before)
		chosen, mass, scores := k.random(3, experts), k.random(3, experts), k.random(n, experts)
		k.dev.Tally(Tally{Choice: choice, Scores: scores, Chosen: chosen, Mass: mass, First: first, Length: length})
		k.dev.Admit(Admit{Choice: choice, At: at, Before: before, Room: room, First: first, Length: length})
		run := func(i int) int { return (first + i/perRow) / length }
		var counts [3 * experts]float64
		for i, e := range choice.I32() {
			place := run(i)*experts + int(e)
			counts[place]++
			want := int32(0)
			if counts[place]+earlier[place] > room {
				want = -1
			}
			if at.I32()[i] != want {
				t.Errorf("%v: choice %d of expert %d in run %d: %d, want %d", d, i, e, run(i), at.I32()[i], want)
			}
		}
		if !slices.Equal(values(chosen), counts[:]) {
			t.Errorf("%v: counts %v, want %v", d, values(chosen), counts)
		}
		sum := 0.0
		for _, v := range values(scores) {
			sum += v
		}
		for _, v := range values(mass) {
			sum -= v
		}
		if sum > 1e-5 || sum < -1e-5 {
			t.Errorf("%v: scores and their sums by run differ by %v", d, sum)
		}
		k.close()
	}
}

func TestScaleRows(t *testing.T) {
	var cases []opCase
	for _, shape := range [][2]int{{0, 5}, {1, 1}, {40, 129}} {
		n, width := shape[0], shape[1]
		cases = append(cases, opCase{fmt.Sprintf("scale rows/%v", shape), func(k *kit) (c trial) {
			x, g := k.random(n, width), k.randomOf(k.statistics(), n)
			want, factors := values(x), values(g)
			for i := range want {
				want[i] *= factors[i/width]
			}
			c.expect(x, want)
			c.call = func() { k.dev.ScaleRows(x, x, g) }
			return c
		}}, opCase{fmt.Sprintf("dot rows/%v", shape), func(k *kit) (c trial) {
			a, b, dst := k.random(n, width), k.random(n, width), k.randomOf(k.statistics(), n)
			want, y := make([]float64, n), values(b)
			for i, v := range values(a) {
				want[i/width] += v * y[i]
			}
			c.expect(dst, want)
			c.call = func() { k.dev.DotRows(dst, a, b) }
			return c
		}})
	}
	testCases(t, cases)
}
