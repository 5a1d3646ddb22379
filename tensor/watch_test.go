package tensor

import (
	"slices"
	"testing"
)

// ledger keeps what a watcher hears.
type ledger struct {
	took, gave []Allocation
	live       Usage
}

func (l *ledger) Took(a Allocation) {
	l.took = append(l.took, a)
	l.live[a.Category] += a.Bytes
}

func (l *ledger) Gave(a Allocation) {
	l.gave = append(l.gave, a)
	l.live[a.Category] -= a.Bytes
}

// TestWatcher holds that a watcher hears of all memory, and of nothing else.
func TestWatcher(t *testing.T) {
	for _, meta := range []bool{false, true} {
		var l ledger
		a := NewArena(ArenaOptions{Meta: meta, Watch: &l})
		a.At("first")
		x := a.New(Parameter, BF16, 3, 4)
		v := x.RowRange(0, 1)
		a.At("second")
		y := a.New(Activation, FP32, 5)
		if l.live != a.Live() {
			t.Errorf("heard of %v, live %v", l.live, a.Live())
		}
		v.Free()
		x.Free()
		took := []Allocation{
			{1, Parameter, BF16, [4]int{3, 4}, 24, "first"}, {2, Activation, FP32, [4]int{5}, 20, "second"},
		}
		gave := []Allocation{took[0]}
		gave[0].Owner = "second"
		if !slices.Equal(l.took, took) || !slices.Equal(l.gave, gave) || l.live != a.Live() {
			t.Errorf("took %v, gave %v, live %v", l.took, l.gave, l.live)
		}
		y.Free()
		a.Close()
	}
}
