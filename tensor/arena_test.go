package tensor

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"carve/unit"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// testChunk is a small chunk, so that an arena gets several.
const testChunk = 16 << 10

// arenaModel is what a test expects of an arena: the live tensors and the byte that each is filled with.
type arenaModel struct {
	arena *Arena
	live  []*Tensor
	marks []byte
	next  byte
	most  unit.Bytes
}

func (m *arenaModel) alloc(t *rapid.T) {
	c := rapid.SampledFrom(Categories()).Draw(t, "category")
	d := rapid.SampledFrom([]DType{FP32, BF16, FP64, Int32}).Draw(t, "dtype")
	// Mostly small, now and then larger than a chunk.
	n := rapid.OneOf(rapid.IntRange(0, 3000), rapid.IntRange(0, 3000), rapid.Just(testChunk)).Draw(t, "elements")
	x := m.arena.New(c, d, n)
	m.next++
	for i := range min(len(x.Raw()), 1<<14) {
		x.Raw()[i] = m.next
	}
	m.live, m.marks = append(m.live, x), append(m.marks, m.next)
	m.most = max(m.most, m.total())
}

func (m *arenaModel) free(t *rapid.T) {
	if len(m.live) == 0 {
		t.Skip("nothing to free")
	}
	i := rapid.IntRange(0, len(m.live)-1).Draw(t, "tensor")
	m.checkMark(t, i)
	m.live[i].Free()
	last := len(m.live) - 1
	m.live[i], m.marks[i] = m.live[last], m.marks[last]
	m.live, m.marks = m.live[:last], m.marks[:last]
}

// checkMark finds out whether anybody else wrote into tensor i.
func (m *arenaModel) checkMark(t *rapid.T, i int) {
	raw := m.live[i].Raw()
	for j := range min(len(raw), 1<<14) {
		if raw[j] != m.marks[i] {
			t.Fatalf("byte %d of %v was overwritten", j, m.live[i])
		}
	}
}

func (m *arenaModel) total() unit.Bytes {
	var n unit.Bytes
	for _, x := range m.live {
		n += unit.Bytes(x.Bytes())
	}
	return n
}

// check holds the arena to the model.
func (m *arenaModel) check(t *rapid.T) {
	var want, listed Usage
	for _, x := range m.live {
		want[x.Category()] += unit.Bytes(x.Bytes())
	}
	m.arena.Tensors(func(x *Tensor) { listed[x.Category()] += unit.Bytes(x.Bytes()) })
	if diff := cmp.Diff(want, m.arena.Live()); diff != "" {
		t.Fatalf("live bytes (-sum of tensors +arena):\n%s", diff)
	}
	if listed != want {
		t.Fatalf("listed tensors hold %v, want %v", listed, want)
	}
	if got := m.arena.Peak().Usage.Total(); got != m.most {
		t.Fatalf("peak %v, want %v", got, m.most)
	}
	if err := m.arena.heap.check(); err != nil {
		t.Fatal(err)
	}
}

// check verifies that the free list is sorted, that no two free blocks are neighbours, and that exactly the blocks
// that are not in use are listed.
func (h *heap) check() error {
	listed := map[*block]bool{}
	for i, b := range h.open {
		if b.used {
			return errors.New("a used block is listed as free")
		}
		if i > 0 && h.open[i-1].less(b) >= 0 {
			return errors.New("free blocks out of order")
		}
		if b.prev != nil && !b.prev.used || b.next != nil && !b.next.used {
			return errors.New("free neighbours are not joined")
		}
		if b.next != nil && b.start+b.size != b.next.start {
			return errors.New("a gap between blocks")
		}
		listed[b] = true
	}
	if len(listed) != len(h.open) {
		return errors.New("a block is listed twice")
	}
	return nil
}

func TestArena(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &arenaModel{arena: NewArena(ArenaOptions{})}
		m.arena.heap.chunk = testChunk
		defer m.arena.Close()
		t.Repeat(map[string]func(*rapid.T){"alloc": m.alloc, "free": m.free, "": m.check})
		for _, x := range m.live {
			x.Free()
		}
		m.live = nil
		m.check(t)
		if got, want := len(m.arena.heap.open), len(m.arena.heap.chunks); got != want {
			t.Fatalf("%d free blocks in %d chunks after everything was freed", got, want)
		}
	})
}

// The checks of the model notice planted faults.
func TestHeapCheckCatches(t *testing.T) {
	faults := map[string]func(h *heap, used *block){
		"used listed":   func(h *heap, used *block) { h.open = append(h.open, used) },
		"order":         func(h *heap, _ *block) { h.open[0], h.open[1] = h.open[1], h.open[0] },
		"not joined":    func(_ *heap, used *block) { used.used = false },
		"gap":           func(h *heap, _ *block) { h.open[0].size -= blockAlign },
		"listed twice":  func(h *heap, _ *block) { h.open = append(h.open, h.open[len(h.open)-1]) },
		"nothing wrong": nil,
	}
	for name, plant := range faults {
		a := NewArena(ArenaOptions{})
		x, y := a.New(Workspace, FP32, 100), a.New(Workspace, FP32, 100)
		x.Free() // free, used, free
		if plant != nil {
			plant(&a.heap, y.block)
		}
		if err := a.heap.check(); (err == nil) != (plant == nil) {
			t.Errorf("%s: %v", name, err)
		}
		a.Close()
	}
}

func TestArenaReusesMemory(t *testing.T) {
	a := NewArena(ArenaOptions{})
	defer a.Close()
	step := func() {
		var ts [20]*Tensor
		for i := range ts {
			ts[i] = a.New(Activation, FP32, 100+i, 50)
		}
		v := ts[3].RowRange(1, 7)
		v.Free()
		for i := range ts {
			ts[(i*7)%len(ts)].Free()
		}
	}
	step()
	reserved := a.Reserved()
	if n := testing.AllocsPerRun(50, step); n != 0 && !raceEnabled {
		t.Errorf("%v allocations per step", n)
	}
	if a.Reserved() != reserved {
		t.Errorf("reserved %v, then %v", reserved, a.Reserved())
	}
}

// recovered is what f panics with.
func recovered(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

func TestArenaLimit(t *testing.T) {
	for _, meta := range []bool{false, true} {
		a := NewArena(ArenaOptions{Limit: 1000, Meta: meta})
		x := a.New(Parameter, FP32, 200)
		a.At("block 3 forward")
		before := a.Live()
		var e *LimitError
		err, _ := recovered(func() { a.New(Gradient, BF16, 101) }).(error)
		if !errors.As(err, &e) {
			t.Fatalf("got %v, want a LimitError", err)
		}
		want := LimitError{Limit: 1000, Live: 800, Asked: 202, Category: Gradient, Owner: "block 3 forward"}
		if diff := cmp.Diff(want, *e); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
		if !strings.Contains(e.Error(), `202 B for gradient at "block 3 forward"`) {
			t.Errorf("message %q", e)
		}
		if a.Live() != before || a.Peak().Event != 1 {
			t.Error("a refused allocation was counted")
		}
		a.New(Gradient, BF16, 100).Free() // what still fits
		x.Free()
		a.Close()
	}
}

func TestArenaPeak(t *testing.T) {
	a := NewArena(ArenaOptions{Meta: true})
	a.At("forward")
	x := a.New(Activation, FP32, 100)
	y := a.New(Workspace, FP32, 50)
	y.Free()
	a.At("backward")
	z := a.New(Gradient, FP32, 40)
	want := Peak{Usage: Usage{Activation: 400, Workspace: 200}, Owner: "forward", Event: 2}
	if diff := cmp.Diff(want, a.Peak()); diff != "" {
		t.Errorf("peak (-want +got):\n%s", diff)
	}
	if got, want := a.Most(), (Usage{Activation: 400, Workspace: 200, Gradient: 160}); got != want {
		t.Errorf("most %v, want %v", got, want)
	}
	x.Free()
	a.ResetPeak()
	if got := a.Peak(); got.Usage.Total() != 160 || got.Owner != "backward" {
		t.Errorf("peak after reset: %+v", got)
	}
	z.Free()
}

// Meta arenas count as real ones do, and hold no memory.
func TestArenaMeta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		held, meta := NewArena(ArenaOptions{}), NewArena(ArenaOptions{Meta: true})
		defer held.Close()
		sizes := rapid.SliceOfN(rapid.IntRange(0, 500), 1, 20).Draw(t, "sizes")
		for i, n := range sizes {
			x, y := held.New(Activation, BF16, n), meta.New(Activation, BF16, n)
			if i%3 == 0 {
				x.Free()
				y.Free()
			}
		}
		if held.Live() != meta.Live() || held.Peak() != meta.Peak() || meta.Reserved() != 0 {
			t.Fatalf("real %v, meta %v", held.Peak(), meta.Peak())
		}
	})
}

func TestArenaPoison(t *testing.T) {
	a := NewArena(ArenaOptions{Poison: true})
	defer a.Close()
	x := a.New(Activation, FP32, 8)
	stale := x.F32()
	clear(stale)
	x.Free()
	for i, v := range stale {
		if !math.IsNaN(float64(v)) {
			t.Errorf("element %d of freed memory is %v", i, v)
		}
	}
	if v := recovered(func() { x.F32() }); v == nil {
		t.Error("use of a freed tensor went through")
	}
	if v := recovered(func() { x.Slice(0, 1) }); v == nil {
		t.Error("a view of a freed tensor went through")
	}
	if v := recovered(x.Free); v == nil {
		t.Error("a second free went through")
	}
}

func TestArenaConcurrent(t *testing.T) {
	a := NewArena(ArenaOptions{})
	defer a.Close()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				x := a.New(Activation, FP32, 10+i*g)
				for j := range x.F32() {
					x.F32()[j] = float32(g)
				}
				v := x.View()
				for _, e := range v.F32() {
					if e != float32(g) {
						t.Errorf("goroutine %d reads %v", g, e)
					}
				}
				v.Free()
				x.Free()
			}
		})
	}
	wg.Wait()
	if a.Live().Total() != 0 {
		t.Errorf("%v live at the end", a.Live())
	}
}
