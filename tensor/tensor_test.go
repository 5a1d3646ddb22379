package tensor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShapes(t *testing.T) {
	a := NewArena(ArenaOptions{Meta: true})
	x := a.New(Parameter, BF16, 2, 3, 5)
	if x.Len() != 30 || x.Bytes() != 60 || x.Rows() != 6 || x.Cols() != 5 || x.Dims() != 3 || x.Dim(1) != 3 || x.Dim(-1) != 5 {
		t.Errorf("%v: len %d bytes %d rows %d cols %d", x, x.Len(), x.Bytes(), x.Rows(), x.Cols())
	}
	if got, want := x.String(), "bf16 [2 3 5] parameter"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	if diff := cmp.Diff([]int{2, 3, 5}, x.Shape()); diff != "" {
		t.Error(diff)
	}
	scalar := a.New(Parameter, FP32)
	if scalar.Len() != 1 || scalar.Rows() != 1 || scalar.Cols() != 1 {
		t.Errorf("a tensor without dimensions has %d elements", scalar.Len())
	}
}

func TestViews(t *testing.T) {
	a := NewArena(ArenaOptions{})
	defer a.Close()
	x := a.New(Parameter, FP32, 4, 3)
	for i := range x.F32() {
		x.F32()[i] = float32(i)
	}
	live := a.Live()
	row, part, all := x.RowRange(1, 3), x.Slice(5, 9, 2, 2), x.View(12)
	if diff := cmp.Diff([]float32{3, 4, 5, 6, 7, 8}, row.F32()); diff != "" {
		t.Error(diff)
	}
	part.F32()[0] = 50
	if all.F32()[5] != 50 || part.Category() != Parameter {
		t.Error("a view has memory of its own")
	}
	if a.Live() != live {
		t.Errorf("views are counted: %v, before %v", a.Live(), live)
	}
	y := a.New(Parameter, FP32, 100)
	y.F32()[11] = 7
	part.Point(y, 10)
	if part.F32()[1] != 7 {
		t.Error("a pointed view does not show its new source")
	}
	row.Free()
	part.Free()
	all.Free()
	if a.Live().Total() != 112*4 {
		t.Errorf("%v live", a.Live())
	}
}

func TestCallersBugsPanic(t *testing.T) {
	a := NewArena(ArenaOptions{})
	defer a.Close()
	x := a.New(Parameter, FP32, 4, 3)
	bugs := map[string]func(){
		"negative size":  func() { a.New(Parameter, FP32, -1) },
		"too many":       func() { a.New(Parameter, FP32, 1, 1, 1, 1, 1) },
		"dtype":          func() { x.BF16() },
		"slice beyond":   func() { x.Slice(3, 13) },
		"slice backward": func() { x.Slice(3, 2) },
		"shape of view":  func() { x.View(5) },
		"dimension":      func() { x.Dim(2) },
		"point an owner": func() { x.Point(x, 0) },
		"point beyond":   func() { x.View().Point(x, 1) },
		"unknown dtype":  func() { a.New(Parameter, DType(9), 1) },
	}
	live := a.Live()
	for name, bug := range bugs {
		if recovered(bug) == nil {
			t.Errorf("%s: no panic", name)
		}
	}
	if a.Live() != live {
		t.Errorf("live %v after refused calls, %v before", a.Live(), live)
	}
	(*Tensor)(nil).Free()
}
