package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// compareReduce runs Float32 and BF16 of r against plain Go on runs of n elements and returns how they differ. The last
// source is a destination.
func compareReduce(r Reducer, n, ranks int, op Combine) error {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(ranks)))
	var a, b [][]float32
	var ah, bh [][]uint16
	for range ranks + 1 {
		x := guardedRun(rng, n)
		h := make([]uint16, len(x))
		narrow(h, x)
		a, b = append(a, x), append(b, append([]float32(nil), x...))
		ah, bh = append(ah, h), append(bh, append([]uint16(nil), h...))
	}
	r.Float32(inner(a[ranks-1:], n), inner(a[:ranks], n), op)
	reduce(inner(b[ranks-1:], n), inner(b[:ranks], n), op, 0)
	r.BF16(inner(ah[ranks-1:], n), inner(ah[:ranks], n), op)
	reduceBF16(inner(bh[ranks-1:], n), inner(bh[:ranks], n), op, 0)
	for i := range a {
		for j := range a[i] {
			if a[i][j] != b[i][j] || ah[i][j] != bh[i][j] {
				return fmt.Errorf("%d elements of %d ranks, run %d, element %d: %v and %x, want %v and %x",
					n, ranks, i, j-guard, a[i][j], ah[i][j], b[i][j], bh[i][j])
			}
		}
	}
	return nil
}

// inner is the runs without their guards.
func inner[T any](runs [][]T, n int) [][]T {
	var in [][]T
	for _, r := range runs {
		in = append(in, r[guard:guard+n])
	}
	return in
}

// Sums are the same to the bit as those of plain Go, because both add in the order of the ranks.
func TestReduceAgainstPortable(t *testing.T) {
	f := Detect()
	for _, r := range []Reducer{NewReducer(f), NewReducer(Features{AVX2: f.AVX2})} {
		for n := range 401 {
			for _, op := range []Combine{CombineSum, CombineAvg, CombineMax} {
				if err := compareReduce(r, n, 1+n%5, op); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestReduceRoundsNaN(t *testing.T) {
	nan, inf := round(float32(math.NaN())), round(float32(math.Inf(1)))
	for _, r := range []Reducer{NewReducer(Detect()), NewReducer(Features{AVX2: Detect().AVX2}), {}} {
		x, y := make([]uint16, 40), make([]uint16, 40)
		for i := range x {
			x[i], y[i] = inf, inf|0x8000 // Inf - Inf
		}
		r.BF16([][]uint16{x}, [][]uint16{x, y}, CombineSum)
		for i := range x {
			if expand(x[i]) == expand(x[i]) {
				t.Fatalf("%+v: element %d of Inf-Inf is %x, want a NaN such as %x", r, i, x[i], nan)
			}
		}
	}
}

func BenchmarkReduce(b *testing.B) {
	for _, ranks := range []int{2, 4} {
		for _, n := range []int{1 << 10, 1 << 14, 1 << 18, 1 << 22} {
			b.Run(fmt.Sprintf("op=sum/ranks=%d/bytes=%d", ranks, 4*n), func(b *testing.B) {
				var runs [][]float32
				for range ranks {
					runs = append(runs, make([]float32, n))
				}
				r := NewReducer(Detect())
				b.SetBytes(int64(2 * ranks * 4 * n))
				for b.Loop() {
					r.Float32(runs, runs, CombineSum)
				}
			})
		}
	}
}
