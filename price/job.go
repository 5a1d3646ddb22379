package price

import (
	"carve/model"
	"carve/unit"
)

// Format is the number format of matrix products.
type Format uint8

// The formats.
const (
	BF16 Format = iota
	FP32
	FP8
	FP4
)

// Schedule is the order of a pipeline's passes, as far as the closed form tells them apart.
type Schedule uint8

// The schedules.
const (
	OneForwardOneBackward Schedule = iota
	AllForwardAllBackward
	Interleaved
	ZeroBubble // backward in halves, memory of 1F1B
	VShape     // two chunks a rank in V shape, hardly a bubble
	DualPipe   // two directions at once, two copies of the parameters
)

// Recompute is what is computed again in the backward pass.
type Recompute uint8

// The kinds.
const (
	KeepAll   Recompute = iota
	Attention           // the core of attention
	Partly              // every other product, and all that is bound by memory (torchtitan's per-operation mode)
	FullBlock
)

// Layout is how a job is split. Degrees are at least 1.
type Layout struct {
	TP, PP, CP, DP, EP int // DP without EP: TP·PP·CP·DP·EP is the number of devices
	ExpertTP           int // tensor degree inside experts
	Virtual            int // chunks of a rank
	SequenceParallel   bool
	Schedule           Schedule
	Zero               int // stage, 0 to 3
	Shard              int // ranks that state is sharded over; 0 means all of the data axes
	Recompute          Recompute
	MicroBatch         int
}

// World is the number of devices.
func (l Layout) World() int { return l.TP * l.PP * l.CP * l.DP * l.EP }

// Job is a training step to be priced.
type Job struct {
	Model       model.Config
	Sequence    int
	GlobalBatch int
	Format      Format
	Unfused     bool // attention that keeps its scores: before block-wise kernels
	Layout      Layout
}

// Micros is M, the micro-batches of a data rank in a step.
func (j *Job) Micros() int {
	return max(1, j.GlobalBatch/max(1, j.Layout.MicroBatch*j.Layout.DP*j.Layout.EP))
}

// Tokens is what a step trains on.
func (j *Job) Tokens() float64 { return float64(j.GlobalBatch) * float64(j.Sequence) }

// rows is T: the tokens of a micro-batch on a rank, before the tensor axis.
func (j *Job) rows() float64 {
	return float64(j.Layout.MicroBatch) * float64(j.Sequence) / float64(j.Layout.CP)
}

// Time is where a step's time goes, on the slowest stage.
type Time struct {
	Step    unit.Seconds
	Compute unit.Seconds // of all micro-batches, recomputation within
	Bubble  unit.Seconds
	TP, CP  unit.Seconds // exposed
	EP, PP  unit.Seconds
	DP      unit.Seconds
	Update  unit.Seconds // of the optimizer
}

// Memory is the bytes of the fullest rank.
type Memory struct {
	Peak                             unit.Bytes
	Parameters, Gradients, Optimizer unit.Bytes
	Activations                      unit.Bytes // of the micro-batches in flight
	Head                             unit.Bytes // logits and their gradient
	Transient                        unit.Bytes // gathered units, buckets, what a block works with
	Stage                            int        // that is fullest
}

// Largest is the line of the account that weighs most, and its name.
func (m Memory) Largest() (string, unit.Bytes) {
	name, most := "parameters", m.Parameters
	for _, line := range []struct {
		name  string
		bytes unit.Bytes
	}{{"gradients", m.Gradients}, {"optimizer", m.Optimizer}, {"activations", m.Activations}, {"logits", m.Head}, {"transient", m.Transient}} {
		if line.bytes > most {
			name, most = line.name, line.bytes
		}
	}
	return name, most
}
