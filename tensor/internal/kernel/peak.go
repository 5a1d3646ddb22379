package kernel

import (
	"math"
	"time"
)

// Peak is the arithmetic that one thread reaches in registers, by the widest instructions that the kernels use. Zero where
// there is no such instruction.
type Peak struct {
	F32  float64 // multiply-adds of fp32, FLOP/s
	BF16 float64 // multiply-adds of pairs of bf16 into fp32, FLOP/s
}

// peakTurns is how many turns a burst has: a few microseconds.
const peakTurns = 1 << 12

// MeasurePeak runs independent chains of multiply-adds for about the budget of each kind, and takes the fastest burst: what
// the core can do when nothing disturbs it. A CPU without the kernels' instructions is measured in portable Go.
func MeasurePeak(f Features, budget time.Duration) Peak {
	if p, ok := peakVector(f, budget); ok {
		return p
	}
	return Peak{F32: fastest(budget, 2*portableChains*peakTurns, portableBurst)}
}

// fastest is the highest rate of a burst of so much work within the budget.
func fastest(budget time.Duration, work float64, burst func()) float64 {
	least := time.Duration(math.MaxInt64)
	for start := time.Now(); time.Since(start) < budget; {
		before := time.Now()
		burst()
		least = min(least, time.Since(before))
	}
	return work / max(least, 1).Seconds()
}

const portableChains = 4

// portableBurst is the multiply-adds of a portable kernel: four chains.
func portableBurst() {
	var s [portableChains]float32
	x, y := float32(len(s)), float32(0)
	for range peakTurns {
		s[0] += x * y
		s[1] += x * y
		s[2] += x * y
		s[3] += x * y
		x, y = y, x
	}
	keep(s[0] + s[1] + s[2] + s[3])
}

// keep stops the compiler from leaving out what computes v.
//
//go:noinline
func keep(float32) {}

// ReadBandwidth is the rate in bytes per second at which the context's threads read memory that no cache holds: the best
// pass over x within the budget.
func (c *Context) ReadBandwidth(x []float32, budget time.Duration) float64 {
	t := &readTask{c: c, v: Vector32(c.features), x: x}
	return fastest(budget, float64(4*len(x)), t.pass)
}

// CopyBandwidth is the rate at which the threads copy memory; the bytes read and the bytes written both count.
func (c *Context) CopyBandwidth(dst, src []float32, budget time.Duration) float64 {
	t := &copyTask{c: c, dst: dst, src: src}
	return fastest(budget, float64(8*len(src)), t.pass)
}

// sweep is the part of a bandwidth measurement that one item has.
const sweep = 1 << 16

type readTask struct {
	c *Context
	v Vector[float32]
	x []float32
}

func (t *readTask) pass() { t.c.Run((len(t.x)+sweep-1)/sweep, t) }

// Do sums the squares of one part: the kernel that reads most and computes least.
func (t *readTask) Do(_, i int) {
	part := t.x[i*sweep : min((i+1)*sweep, len(t.x))]
	keep(float32(t.v.SumSquares(part)))
}

type copyTask struct {
	c        *Context
	dst, src []float32
}

func (t *copyTask) pass() { t.c.Run((len(t.src)+sweep-1)/sweep, t) }

// Do copies one part.
func (t *copyTask) Do(_, i int) {
	lo, hi := i*sweep, min((i+1)*sweep, len(t.src))
	copy(t.dst[lo:hi], t.src[lo:hi])
}
