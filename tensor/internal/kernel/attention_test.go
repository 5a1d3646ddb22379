package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// panelOp is a method of Panels as the tests call it: with two panels of rows and five vectors of a panel's width.
type panelOp struct {
	name string
	call func(v vec, x, y nums, a rows)
}

var panelOps = []panelOp{
	{"softmax", func(v vec, x, _ nums, a rows) { v.PanelSoftmax(x, a[0], a[1], a[2]) }},
	{"scale", func(v vec, x, _ nums, a rows) { v.PanelScale(x, a[0]) }},
	{"grad", func(v vec, x, y nums, a rows) { v.PanelGrad(x, y, a[0], a[1], 0.25) }},
}

// comparePanels runs op on both implementations and returns how they differ. Column 3 sees nothing, and column 4 has seen
// nothing before.
func comparePanels(op panelOp, got, want vec, n, width int) error {
	rng := rand.New(rand.NewPCG(uint64(n), 9))
	hidden := float32(math.Inf(-1))
	make2 := func(n int) [2][]float32 {
		x := guardedRun(rng, n)
		return [2][]float32{x, append([]float32(nil), x...)}
	}
	x, y := make2(n*width), make2(n*width)
	var runs [][2][]float32
	for range 3 {
		runs = append(runs, make2(width))
	}
	for side := range 2 {
		runs[0][side][guard+3], runs[0][side][guard+4] = hidden, hidden
		for j := range n {
			x[side][guard+j*width+3] = hidden
		}
		if op.name == "scale" {
			runs[0][side][guard+3], runs[0][side][guard+4] = 1, 2
			x[side] = guardedRun(rand.New(rand.NewPCG(1, 1)), n*width)
		}
	}
	for side, v := range []vec{got, want} {
		var a rows
		for _, r := range runs {
			a = append(a, r[side][guard:guard+width])
		}
		op.call(v, x[side][guard:guard+n*width], y[side][guard:guard+n*width], a)
	}
	for i, r := range append(runs, x, y) {
		if err := nearRuns(r[0], r[1], len(r[0])-2*guard); err != nil {
			return fmt.Errorf("%d rows of %d, run %d: %w", n, width, i, err)
		}
	}
	return nil
}

func TestPanelsAgainstPortable(t *testing.T) {
	for name, v := range vectors() {
		for _, op := range panelOps {
			for n := range 70 {
				for _, width := range []int{16, 32, 20} {
					if err := comparePanels(op, v, portable[float32]{}, n, width); err != nil {
						t.Fatalf("%s %s: %v", name, op.name, err)
					}
				}
			}
		}
	}
}

// lazy is Panels with a planted fault: it leaves the last row out.
type lazy struct{ portable[float32] }

func (l lazy) PanelScale(x, a []float32) { l.portable.PanelScale(x[:len(x)-len(a)], a) }

func TestPanelCheckCatches(t *testing.T) {
	if comparePanels(panelOps[1], lazy{}, portable[float32]{}, 5, 16) == nil {
		t.Error("a row that was left out is not noticed")
	}
}

// Lay writes rows as they are, transposed, and from bf16, at any size, and nothing between rows.
func TestLay(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, f := range []Features{Detect(), {AVX2: Detect().AVX2}, {}} {
		c := NewContext(1, make([]byte, WorkspaceBytes(1)), f)
		for _, shape := range [][2]int{{1, 1}, {3, 70}, {33, 17}, {64, 64}, {100, 40}} {
			m, n := shape[0], shape[1]
			for _, trans := range []bool{false, true} {
				ld := max(m, n) + 3
				src := guardedRun(rng, ld*ld)
				half := make([]uint16, len(src))
				narrow(half, src)
				for _, a := range []Mat{{F32: src, LD: ld, Trans: trans}, {BF16: half, LD: ld, Trans: trans}} {
					width := LayWidth[float32](n)
					dst := make([]float32, m*width)
					Lay(c, dst, width, a, m, n)
					for i := range dst {
						want := float32(0)
						if i%width < n {
							want = float32(a.at(i/width, i%width))
						}
						if dst[i] != want {
							t.Fatalf("%+v: %dx%d transposed %v: element %d,%d is %v, want %v", f, m, n, trans, i/width, i%width, dst[i], want)
						}
					}
				}
			}
		}
		c.Close()
	}
}
