package tensor

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"carve/tensor/internal/kernel"
)

// testMeta runs a case on the meta device: it takes the workspace that the cpu device takes, gives it back, and records
// the call.
func testMeta(t *testing.T, f kernel.Features, c opCase, cpu *kit) {
	var log OpLog
	a := NewArena(ArenaOptions{})
	defer a.Close()
	a.meta = true
	dry := &Meta{cpu: newCPU(a, cpu.dev.Threads(), f), record: log.Record}
	a.meta = false // operands begin with elements, because twins read them
	meta := &kit{arena: a, dev: dry, dtype: cpu.dtype}
	if got, want := workspace(meta, c), workspace(cpu, c); got != want {
		t.Errorf("workspace %v on meta, %v on cpu", got, want)
	}
	if len(log) == 0 {
		t.Error("meta records nothing")
	}
	for _, o := range log {
		if o.FLOPs < 0 || o.Read < 0 || o.Written < 0 || o.Kind >= numOpKinds {
			t.Errorf("meta records %+v", o)
		}
	}
}

// workspace is what a call takes at most, beyond what the device holds.
func workspace(k *kit, c opCase) string {
	k.rng = newSource()
	call := c.prepare(k).call
	if _, ok := k.dev.(*Meta); ok {
		k.arena.meta = true
		k.arena.Tensors(func(t *Tensor) { t.data = nil })
	}
	k.arena.ResetPeak()
	before := k.arena.Live()
	call()
	if k.arena.Live() != before {
		return fmt.Sprintf("not returned: %v live", k.arena.Live())
	}
	return (k.arena.Most().Of(Workspace) - before.Of(Workspace)).String()
}

// TestMetaRecordsEveryMethod holds that each method of a device is one kind of operation. It reads the kinds' names: a
// method without a kind is one that nobody would price.
func TestMetaRecordsEveryMethod(t *testing.T) {
	var names []string
	for _, k := range OpKinds() {
		if k.String() == "" {
			t.Errorf("kind %d has no name", k)
		}
		names = append(names, strings.ReplaceAll(k.String(), "-", ""))
	}
	device := reflect.TypeFor[Device]()
	for method := range device.Methods() {
		name := strings.ToLower(method.Name)
		if slices.Contains([]string{"threads", "close", "copycolumns"}, name) {
			continue
		}
		if !slices.Contains(names, name) {
			t.Errorf("device method %s has no kind of operation", method.Name)
		}
	}
}

// TestMetaCounts compares what is recorded with counts by hand.
func TestMetaCounts(t *testing.T) {
	var log OpLog
	a := NewArena(ArenaOptions{Meta: true})
	dev := NewMeta(a, MetaOptions{Threads: 2, Kernels: PortableKernels, Record: log.Record})
	defer dev.Close()
	a.At("here")
	bf16 := func(dims ...int) *Tensor { return a.New(Activation, BF16, dims...) }
	fp32 := func(dims ...int) *Tensor { return a.New(Activation, FP32, dims...) }
	ints := func(n int) *Tensor { return a.New(Activation, Int32, n) }
	heads := func(t *Tensor, n int) Columns { return Columns{T: t, Heads: n, Width: t.Cols() / n} }
	attention := Attention{
		Out: heads(bf16(6, 8), 4), Q: heads(bf16(6, 8), 4), K: heads(bf16(6, 4), 2), V: heads(bf16(6, 4), 2),
		LSE: fp32(2, 4, 3), Batch: 2, Causal: true,
	}
	ring := attention
	ring.QueryPos, ring.KeyPos = ints(3), ints(3)
	for _, c := range []struct {
		name string
		call func()
		want Operation
	}{
		{
			"matmul", func() { dev.MatMul(MatMul{C: bf16(2, 3), A: bf16(2, 5), B: bf16(3, 5), TransB: true}) },
			newOperation(OpMatMul, BF16, [4]int{2, 3, 5}, 60, 20+30, 12, "here"),
		},
		{
			"accumulating matmul", func() {
				dev.MatMul(MatMul{C: fp32(2, 3), A: bf16(5, 2), B: bf16(5, 3), TransA: true, Accumulate: true})
			},
			newOperation(OpMatMul, BF16, [4]int{2, 3, 5}, 60, 20+30+24, 24, "here"),
		},
		{ // two sequences of three: 6 pairs each, 4 heads of 2
			"attention", func() { dev.Attention(attention) },
			newOperation(OpAttention, BF16, [4]int{6, 6, 4, 2}, 4*2*6*4*2, 96+48+48, 96+96, "here"),
		},
		{ // half of nine pairs
			"attention of a ring", func() { dev.Attention(ring) },
			newOperation(OpAttention, BF16, [4]int{6, 6, 4, 2}, 4*2*4.5*4*2, 96+48+48, 96+96, "here"),
		},
		{
			"adamw", func() { dev.AdamW(AdamW{Master: fp32(10), M: fp32(10), V: fp32(10), Grad: bf16(10), Param: bf16(10)}) },
			newOperation(OpAdamW, FP32, [4]int{10, 1}, 150, 120+20, 120+20, "here"),
		},
	} {
		log = nil
		c.call()
		if len(log) != 1 || log[0] != c.want {
			t.Errorf("%s: recorded %+v, want %+v", c.name, log, c.want)
		}
	}
}

// TestMetaTotals sums by kind.
func TestMetaTotals(t *testing.T) {
	var totals OpTotals
	a := NewArena(ArenaOptions{Meta: true})
	dev := NewMeta(a, MetaOptions{Record: totals.Record})
	defer dev.Close()
	x := a.New(Activation, FP32, 3, 4)
	for range 2 {
		dev.Add(x, x)
	}
	if got, want := totals[OpAdd], (OpTotal{Calls: 2, FLOPs: 24, Read: 192, Written: 96}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := dev.SquaredNorm(x); got != 0 || !dev.Finite(x) {
		t.Errorf("the norm of nothing is %v", got)
	}
}

// TestMetaNeedsMetaArena holds that a device without elements is not put on an arena that has some.
func TestMetaNeedsMetaArena(t *testing.T) {
	a := NewArena(ArenaOptions{})
	defer a.Close()
	defer func() {
		if recover() == nil {
			t.Error("a meta device on memory")
		}
	}()
	NewMeta(a, MetaOptions{})
}

// TestMetaWorkspaceControl plants a device that takes a little more on the cpu than on meta.
func TestMetaWorkspaceControl(t *testing.T) {
	cpu := newKit(FP32, 2)
	defer cpu.close()
	greedy := opCase{"greedy", func(k *kit) trial {
		return trial{call: func() {
			n := 64
			if !k.arena.meta {
				n++
			}
			k.arena.New(Workspace, FP32, n).Free()
		}}
	}}
	meta := &kit{arena: NewArena(ArenaOptions{Meta: true}), dtype: FP32}
	if a, b := workspace(cpu, greedy), workspace(meta, greedy); a == b {
		t.Errorf("both take %v", a)
	}
}

// TestMetaExperts runs the operations of a mixture of experts on both devices: 6 rows choose 2 of 4 experts.
func TestMetaExperts(t *testing.T) {
	const n, e, k = 6, 4, 2
	gating := Gating{PerToken: k, Groups: 2, GroupsPerToken: 1, Normalise: true, Scale: 1}
	choice := func(c *kit) *Tensor {
		t := c.arena.New(Activation, Int32, n, k)
		copy(t.I32(), []int32{0, 1, 1, 2, 2, 3, 3, 0, 0, 2, 1, 3})
		return t
	}
	order := func(c *kit) *Tensor { return c.ints(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) }
	cases := []opCase{
		{"route", func(c *kit) trial {
			op := Route{Gating: gating, Scores: c.random(n, e), Bias: c.random(e), Choice: choice(c), Gate: c.random(n, k)}
			return trial{call: func() { c.dev.Route(op) }}
		}},
		{"route backward", func(c *kit) trial {
			op := RouteBackward{
				Gating: gating, Scores: c.random(n, e), Choice: choice(c), Gate: c.random(n, k), At: order(c), Pull: c.random(n * k),
				Push: c.random(2, e), Length: 3,
			}
			return trial{call: func() { c.dev.RouteBackward(op) }}
		}},
		{"admit", func(c *kit) trial {
			op := Admit{Choice: choice(c), At: order(c), Before: c.random(2, e), Room: 1, Length: 3}
			return trial{call: func() { c.dev.Admit(op) }}
		}},
		{"deal", func(c *kit) trial {
			op := Deal{
				Choice: choice(c), Gate: c.random(n, k), At: order(c), From: order(c), Sorted: c.random(n * k),
				Counts: c.ints(0, 0, 0, 0), Chosen: c.ints(0, 0, 0, 0),
			}
			return trial{call: func() { c.dev.Deal(op) }}
		}},
		{"tally", func(c *kit) trial {
			op := Tally{Choice: choice(c), Scores: c.random(n, e), Chosen: c.random(2, e), Mass: c.random(2, e), Length: 3}
			return trial{call: func() { c.dev.Tally(op) }}
		}},
		{"scale rows", func(c *kit) trial {
			y, x, g := c.random(n, 5), c.random(n, 5), c.random(n)
			return trial{call: func() { c.dev.ScaleRows(y, x, g) }}
		}},
		{"dot rows", func(c *kit) trial {
			dst, a, b := c.random(n), c.random(n, 5), c.random(n, 5)
			return trial{call: func() { c.dev.DotRows(dst, a, b) }}
		}},
	}
	for _, d := range []DType{FP32, FP64} {
		cpu := newKit(d, 3)
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { testMeta(t, kernel.Detect(), c, cpu) })
		}
		cpu.close()
	}
}
