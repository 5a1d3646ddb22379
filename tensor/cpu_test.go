package tensor

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"carve/tensor/internal/kernel"
)

// kit makes operands of one dtype on one device, the same ones for every number of threads.
type kit struct {
	arena *Arena
	dev   Device
	dtype DType
	rng   *rand.Rand
}

func newKit(d DType, threads int) *kit { return newKitOn(kernel.Detect(), d, threads) }

// newKitOn is a kit on a CPU of fewer features.
func newKitOn(f kernel.Features, d DType, threads int) *kit {
	a := NewArena(ArenaOptions{Poison: true})
	return &kit{arena: a, dev: newCPU(a, threads, f), dtype: d, rng: newSource()}
}

func newSource() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func (k *kit) close() {
	k.dev.Close()
	k.arena.Close()
}

// statistics is the dtype of norms' and softmaxes' statistics.
func (k *kit) statistics() DType {
	if k.dtype == FP64 {
		return FP64
	}
	return FP32
}

// random is a tensor of normal numbers.
func (k *kit) random(dims ...int) *Tensor { return k.randomOf(k.dtype, dims...) }

func (k *kit) randomOf(d DType, dims ...int) *Tensor {
	t := k.arena.New(Activation, d, dims...)
	x := make([]float64, t.Len())
	for i := range x {
		x[i] = k.rng.NormFloat64()
	}
	setValues(t, x)
	return t
}

// ints is an int32 tensor.
func (k *kit) ints(x ...int32) *Tensor {
	t := k.arena.New(Activation, Int32, len(x))
	copy(t.I32(), x)
	return t
}

func setValues(t *Tensor, x []float64) {
	for i, v := range x {
		switch t.dtype {
		case FP32:
			t.F32()[i] = float32(v)
		case BF16:
			var h [1]uint16
			kernel.Vector64().Narrow(h[:], []float64{v})
			t.BF16()[i] = h[0]
		case FP64:
			t.F64()[i] = v
		case Int32:
			t.I32()[i] = int32(v)
		}
	}
}

// values is a copy of a tensor's elements.
func values(t *Tensor) []float64 {
	x := make([]float64, t.Len())
	for i := range x {
		switch t.dtype {
		case FP32:
			x[i] = float64(t.F32()[i])
		case BF16:
			x[i] = float64(math.Float32frombits(uint32(t.BF16()[i]) << 16))
		case FP64:
			x[i] = t.F64()[i]
		case Int32:
			x[i] = float64(t.I32()[i])
		}
	}
	return x
}

// trial is one call of an operation, with what its twin says of the results.
type trial struct {
	call    func()
	results []*Tensor
	want    [][]float64
}

// expect adds a result.
func (c *trial) expect(t *Tensor, want []float64) {
	c.results = append(c.results, t)
	c.want = append(c.want, want)
}

// opCase is one case of the tests of an operation. prepare makes operands, has the twin compute the results in float64, and
// returns the call.
type opCase struct {
	name    string
	prepare func(k *kit) trial
}

// Tolerances, relative to max(1, |want|): a few dozen roundings of the dtype's computation; for bf16 half a unit of its 8
// bits, doubled because sums of rounded operands meet it.
var tolerances = map[DType]float64{FP32: 1e-5, FP64: 1e-12, BF16: 1.0 / 128}

// check compares results with the twin's.
func (c *trial) check() error {
	for i, t := range c.results {
		if err := compare(values(t), c.want[i], tolerances[t.dtype]); err != nil {
			return fmt.Errorf("result %d, %v: %w", i, t, err)
		}
	}
	return nil
}

func compare(got, want []float64, tolerance float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d elements, want %d", len(got), len(want))
	}
	for i, w := range want {
		if g := got[i]; !near(g, w, tolerance) {
			return fmt.Errorf("element %d is %v, want %v", i, g, w)
		}
	}
	return nil
}

func near(got, want, tolerance float64) bool {
	if math.IsInf(want, 0) {
		return got == want
	}
	return math.Abs(got-want) <= tolerance*max(1, math.Abs(want))
}

// testCases runs every case on every dtype with one thread and several: results are those of the twin, the same bits for
// every number of threads, a planted fault is caught, workspace is returned, and repeated calls allocate nothing.
func testCases(t *testing.T, cases []opCase) { testCasesOn(t, kernel.Detect(), cases) }

// lesserFeatures are what tests of code that depends on the CPU run with besides all features.
var lesserFeatures = map[string]kernel.Features{"avx2": {AVX2: kernel.Detect().AVX2}, "portable": {}}

func testCasesOn(t *testing.T, f kernel.Features, cases []opCase) {
	for _, d := range []DType{FP32, BF16, FP64} {
		one, many := newKitOn(f, d, 1), newKitOn(f, d, 3)
		for _, c := range cases {
			t.Run(fmt.Sprintf("%s/%v", c.name, d), func(t *testing.T) {
				testCase(t, c, one, many)
				testMeta(t, f, c, many)
			})
		}
		one.close()
		many.close()
	}
}

func testCase(t *testing.T, c opCase, one, many *kit) {
	one.rng, many.rng = newSource(), newSource()
	a, b := c.prepare(one), c.prepare(many)
	live := one.arena.Live()
	a.call()
	b.call()
	if one.arena.Live() != live {
		t.Errorf("live bytes %v after the call, %v before", one.arena.Live(), live)
	}
	if err := a.check(); err != nil {
		t.Fatal(err)
	}
	for i := range a.results {
		if !bytes.Equal(a.results[i].Raw(), b.results[i].Raw()) {
			t.Errorf("result %d depends on the number of threads", i)
		}
	}
	plantFaults(t, &a)
	if !raceEnabled {
		if n := testing.AllocsPerRun(5, b.call); n != 0 {
			t.Errorf("%v allocations per call", n)
		}
	}
}

// plantFaults changes one element of each result and expects the check to fail.
func plantFaults(t *testing.T, c *trial) {
	for i, r := range c.results {
		if r.Len() == 0 {
			continue
		}
		x := values(r)
		at := len(x) / 2
		good := x[at]
		x[at] += 4 * tolerances[r.dtype] * max(1, math.Abs(good))
		if math.IsInf(good, 0) {
			x[at] = 0
		}
		setValues(r, x)
		if c.check() == nil {
			t.Errorf("a fault in result %d is not noticed", i)
		}
		x[at] = good
		setValues(r, x)
	}
}
