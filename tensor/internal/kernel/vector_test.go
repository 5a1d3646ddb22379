package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// vectors are the implementations of Vector on float32 that this machine and build have.
func vectors() map[string]Vector[float32] {
	f := Detect()
	m := map[string]Vector[float32]{}
	if f.AVX512 {
		m["avx512"] = Vector32(Features{AVX512: true})
	}
	if f.AVX2 {
		m["avx2"] = Vector32(Features{AVX2: true})
	}
	return m
}

// vectorOp is a method of Vector as the tests call it: with runs of one length and some numbers; it returns its results.
type vectorOp struct {
	name    string
	runs    int
	numbers int
	call    func(v Vector[float32], r [][]float32, a []float32) []float32
	shared  []int // runs 0 and these may be the same
}

func none(f func(v Vector[float32], r [][]float32, a []float32)) func(Vector[float32], [][]float32, []float32) []float32 {
	return func(v Vector[float32], r [][]float32, a []float32) []float32 {
		f(v, r, a)
		return nil
	}
}

type (
	vec  = Vector[float32]
	rows = [][]float32
	nums = []float32
)

func vectorOps() []vectorOp {
	return []vectorOp{
		{"fill", 1, 1, none(func(v vec, r rows, a nums) { v.Fill(r[0], a[0]) }), nil},
		{"add", 2, 0, none(func(v vec, r rows, _ nums) { v.Add(r[0], r[1]) }), []int{1}},
		{"add scaled", 2, 1, none(func(v vec, r rows, a nums) { v.AddScaled(r[0], a[0], r[1]) }), []int{1}},
		{"scale", 2, 1, none(func(v vec, r rows, a nums) { v.Scale(r[0], a[0], r[1]) }), []int{1}},
		{"rotate", 4, 0, none(func(v vec, r rows, _ nums) { v.Rotate(r[0], r[1], r[2], r[3]) }), nil},
		{"unrotate", 4, 0, none(func(v vec, r rows, _ nums) { v.Unrotate(r[0], r[1], r[2], r[3]) }), nil},
		{"sum", 1, 0, func(v vec, r rows, _ nums) nums { return nums{float32(v.Sum(r[0]))} }, nil},
		{"sum of squares", 1, 0, func(v vec, r rows, _ nums) nums { return nums{float32(v.SumSquares(r[0]))} }, nil},
		{"dot", 2, 0, func(v vec, r rows, _ nums) nums { return nums{v.Dot(r[0], r[1])} }, nil},
		{"largest", 1, 0, func(v vec, r rows, _ nums) nums { return nums{v.Largest(r[0])} }, nil},
		{"mean square", 1, 0, func(v vec, r rows, _ nums) nums { return nums{v.MeanSquare(r[0])} }, nil},
		{"moments", 1, 0, func(v vec, r rows, _ nums) nums { m, s := v.Moments(r[0]); return nums{m, s} }, nil},
		{"rms apply", 3, 1, none(func(v vec, r rows, a nums) { v.RMSApply(r[0], r[1], r[2], a[0]) }), []int{1}},
		{"rms dot", 3, 0, func(v vec, r rows, _ nums) nums { return nums{v.RMSDot(r[0], r[1], r[2])} }, nil},
		{"rms grad", 5, 2, none(func(v vec, r rows, a nums) { v.RMSGrad(r[0], r[1], r[2], r[3], r[4], a[0], a[1]) }), []int{2}},
		{"layer apply", 4, 2, none(func(v vec, r rows, a nums) { v.LayerApply(r[0], r[1], r[2], r[3], a[0], a[1]) }), []int{1}},
		{"layer sums", 3, 2, func(v vec, r rows, a nums) nums {
			g, gx := v.LayerSums(r[0], r[1], r[2], a[0], a[1])
			return nums{g, gx}
		}, nil},
		{"layer grad", 6, 4, none(func(v vec, r rows, a nums) {
			v.LayerGrad(r[0], r[1], r[2], r[3], r[4], r[5], a[0], a[1], a[2], a[3])
		}), []int{3}},
		{"swiglu", 3, 0, none(func(v vec, r rows, _ nums) { v.SwiGLU(r[0], r[1], r[2]) }), []int{1, 2}},
		{"swiglu grad", 6, 0, none(func(v vec, r rows, _ nums) { v.SwiGLUGrad(r[0], r[1], r[2], r[3], r[4], r[5]) }), []int{4}},
		{"gelu", 2, 0, none(func(v vec, r rows, _ nums) { v.GELU(r[0], r[1]) }), []int{1}},
		{"gelu grad", 4, 0, none(func(v vec, r rows, _ nums) { v.GELUGrad(r[0], r[1], r[2], r[3]) }), []int{2, 3}},
		{"exp", 1, 1, func(v vec, r rows, a nums) nums { return nums{v.Exp(r[0], a[0])} }, nil},
		{"sum of exp", 1, 1, func(v vec, r rows, a nums) nums { return nums{v.SumExp(r[0], a[0])} }, nil},
		{"softmax grad", 1, 2, none(func(v vec, r rows, a nums) { v.SoftmaxGrad(r[0], a[0], a[1]) }), nil},
		{"adamw", 4, 0, none(func(v vec, r rows, _ nums) {
			for i, x := range r[2] {
				r[2][i] = abs(x)
			}
			v.AdamW(r[0], r[1], r[2], r[3], AdamStep{Rate: 0.1, Beta1: 0.9, Beta2: 0.95, Eps: 1e-3, Decay: 0.2, Correct1: 2, Correct2: 3, GradScale: 0.7})
		}), nil},
		{"sgd", 3, 0, none(func(v vec, r rows, _ nums) {
			v.SGD(r[0], r[1], r[2], SGDStep{Rate: 0.1, Momentum: 0.9, Decay: 0.2, GradScale: 0.7})
		}), nil},
	}
}

func abs(x float32) float32 { return max(x, -x) }

// vectorTolerance, relative to max(1, |want|), is some roundings of float32. Sums get it for every 16 elements' worth of
// random walk, as their order differs.
const vectorTolerance = 4e-6

// guard is how many elements before and after a run must stay as they are.
const guard = 17

// guardedRun is a run of n elements with guards.
func guardedRun(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n+2*guard)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// compareVectors runs op on both implementations with runs of n elements and returns how they differ.
func compareVectors(op vectorOp, got Vector[float32], n int, share int) error {
	want := portable[float32]{}
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	var a, b, inA, inB [][]float32
	for range op.runs {
		x := guardedRun(rng, n)
		y := append([]float32(nil), x...)
		a, b = append(a, x), append(b, y)
	}
	if share > 0 {
		a[share], b[share] = a[0], b[0]
	}
	for i := range a {
		inA, inB = append(inA, a[i][guard:guard+n]), append(inB, b[i][guard:guard+n])
	}
	numbers := guardedRun(rng, op.numbers)[guard : guard+op.numbers]
	ra, rb := op.call(got, inA, numbers), op.call(want, inB, numbers)
	for i := range a {
		if err := nearRuns(a[i], b[i], n); err != nil {
			return fmt.Errorf("%d elements, run %d: %w", n, i, err)
		}
	}
	for i := range ra {
		if !close32(ra[i], rb[i], vectorTolerance*math.Sqrt(1+float64(n)/16)) {
			return fmt.Errorf("%d elements: result %d is %v, want %v", n, i, ra[i], rb[i])
		}
	}
	return nil
}

// nearRuns compares runs with their guards, which must be the same to the bit.
func nearRuns(a, b []float32, n int) error {
	for i := range a {
		tolerance := vectorTolerance
		if i < guard || i >= guard+n {
			tolerance = 0
		}
		if !close32(a[i], b[i], tolerance) {
			return fmt.Errorf("element %d is %v, want %v", i-guard, a[i], b[i])
		}
	}
	return nil
}

func close32(a, b float32, tolerance float64) bool {
	x, y := float64(a), float64(b)
	if x == y || x != x && y != y {
		return true
	}
	return math.Abs(x-y) <= tolerance*max(1, math.Abs(y))
}

func TestVectorAgainstPortable(t *testing.T) {
	for name, v := range vectors() {
		for _, op := range vectorOps() {
			t.Run(name+"/"+op.name, func(t *testing.T) {
				for n := range 1001 {
					if err := compareVectors(op, v, n, 0); err != nil {
						t.Fatal(err)
					}
				}
				for _, share := range op.shared {
					for _, n := range []int{1, 16, 77, 500} {
						if err := compareVectors(op, v, n, share); err != nil {
							t.Fatalf("run 0 is run %d: %v", share, err)
						}
					}
				}
			})
		}
	}
}

// faulty is Vector with a planted fault.
type faulty struct {
	portable[float32]
	beyond, short, wrong bool
}

func (f faulty) Add(dst, x []float32) {
	n := len(dst)
	switch {
	case f.beyond:
		f.portable.Add(dst[:n+1], x[:n+1])
	case f.short:
		f.portable.Add(dst[:n-1], x[:n-1])
	case f.wrong:
		f.portable.Add(dst, x)
		dst[n/2] += 1e-4
	}
}

func (f faulty) Dot(x, y []float32) float32 { return f.portable.Dot(x, y) + 1e-3 }

func TestVectorCheckCatches(t *testing.T) {
	ops := vectorOps()
	for _, f := range []faulty{{beyond: true}, {short: true}, {wrong: true}} {
		if compareVectors(ops[1], f, 50, 0) == nil {
			t.Errorf("%+v is not noticed", f)
		}
	}
	if compareVectors(ops[8], faulty{}, 50, 0) == nil {
		t.Error("a wrong dot product is not noticed")
	}
}

// ulps is how many units of the last place of want the two differ by; below the smallest normal number a unit is the
// smallest denormal.
func ulps(got float32, want float64) float64 {
	if math.IsInf(float64(got), 0) || math.IsInf(float64(float32(want)), 0) {
		if got == float32(want) {
			return 0
		}
		return math.Inf(1)
	}
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

// exp is good to 2 units of the last place everywhere, through denormals to 0 and Inf.
func TestExpAccuracy(t *testing.T) {
	for name, v := range vectors() {
		worst, at := 0.0, float32(0)
		x := make([]float32, 1024)
		in := make([]float32, len(x))
		for base := -110.0; base < 90; base += 0.25 {
			for i := range x {
				x[i] = float32(base + 0.25*float64(i)/float64(len(x)))
			}
			copy(in, x)
			v.Exp(x, 0)
			for i := range x {
				if u := ulps(x[i], math.Exp(float64(in[i]))); u > worst {
					worst, at = u, in[i]
				}
			}
		}
		t.Logf("%s: worst error %.2f ulp at %v", name, worst, at)
		if worst > 2 {
			t.Errorf("%s: exp(%v) is off by %.2f ulp, want at most 2", name, at, worst)
		}
	}
	if ulps(math.Nextafter32(1, 2), 1) < 0.9 || ulps(0, 1e-44) < 5 { // negative control
		t.Error("ulps does not count")
	}
}

func TestExpSpecial(t *testing.T) {
	inf := float32(math.Inf(1))
	for name, v := range vectors() {
		for _, n := range []int{1, 16, 40} {
			for in, want := range map[float32]float32{-inf: 0, inf: inf, 0: 1, -200: 0, 200: inf, -1e30: 0} {
				x := make([]float32, n)
				v.Fill(x, in)
				v.Exp(x, 0)
				if x[0] != want || x[n-1] != want {
					t.Errorf("%s: exp(%v) is %v, want %v", name, in, x[0], want)
				}
			}
			x := make([]float32, n)
			x[n-1] = float32(math.NaN())
			if s := v.Exp(x, 0); s == s || x[n-1] == x[n-1] {
				t.Errorf("%s: exp of NaN is %v, sum %v", name, x[n-1], s)
			}
		}
	}
}

// Casts are exact: every bf16 number, and fp32 numbers around ties, infinities, NaNs and denormals, at every length.
func TestVectorCasts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for name, v := range vectors() {
		for n := range 301 {
			h, f := make([]uint16, n+2*guard), make([]float32, n+2*guard)
			for i := range h {
				h[i] = uint16(rng.Uint32())
				f[i] = math.Float32frombits(rng.Uint32()&0xffff8000 | rng.Uint32()&1)
			}
			f[guard] = math.Float32frombits(0x7f800001) // a NaN that cutting would make infinite
			wide, wideWant := append([]float32(nil), f...), append([]float32(nil), f...)
			v.Widen(wide[guard:guard+n], h[guard:guard+n])
			widen(wideWant[guard:guard+n], h[guard:guard+n])
			thin, thinWant := append([]uint16(nil), h...), append([]uint16(nil), h...)
			v.Narrow(thin[guard:guard+n], f[guard:guard+n])
			narrow(thinWant[guard:guard+n], f[guard:guard+n])
			for i := range h {
				if math.Float32bits(wide[i]) != math.Float32bits(wideWant[i]) {
					t.Fatalf("%s, %d elements: widen %x gives %x", name, n, h[i], math.Float32bits(wide[i]))
				}
				if thin[i] != thinWant[i] {
					t.Fatalf("%s, %d elements: narrow %x gives %x, want %x", name, n, math.Float32bits(f[i]), thin[i], thinWant[i])
				}
			}
		}
	}
}

func TestVectorFinite(t *testing.T) {
	bad := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(0xffffffff)}
	for name, v := range vectors() {
		for n := range 200 {
			x := make([]float32, n)
			v.Fill(x, -math.MaxFloat32)
			if !v.Finite(x) {
				t.Fatalf("%s: %d finite elements are not", name, n)
			}
			for i := range x {
				old := x[i]
				x[i] = bad[i%len(bad)]
				if v.Finite(x) {
					t.Fatalf("%s: %v at %d of %d is finite", name, x[i], i, n)
				}
				x[i] = old
			}
		}
	}
}
