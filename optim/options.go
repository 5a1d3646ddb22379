package optim

import (
	"errors"
	"fmt"

	"carve/nn"
	"carve/unit"
)

// Stage is how much of the state the ranks with the same parameters share out: the stages of ZeRO (Rajbhandari et al.,
// arXiv 1910.02054).
type Stage uint8

// The stages. Each shards what the one before does, and more.
const (
	Replicated      Stage = iota // everything is on every rank
	ShardOptimizer               // masters and moments
	ShardGradients               // and gradients, which are whole only for a unit while its backward runs
	ShardParameters              // and parameters, which are whole only for a unit while it runs
)

// Ownership is the unit in which state is dealt out.
type Ownership uint8

// The kinds.
const (
	Flat        Ownership = iota // ranges of every unit, even to the element
	WholeTensor                  // whole tensors, about evenly
)

// Mode is when and where gradients are reduced. Bucketed and Naive give the same bytes.
type Mode uint8

// The modes.
const (
	Bucketed Mode = iota // each bucket as soon as its gradients are complete, while the backward goes on
	Naive                // after the backward; at stage 3 units are gathered when they are needed: what to compare with
	Server               // to one rank, which alone keeps the optimizer's state and sends the parameters back
)

// Reshard is when stage 3 frees the parameters of a unit that it gathered for a forward.
type Reshard uint8

// The choices.
const (
	AfterForward  Reshard = iota // and gathers them again for the backward
	AfterBackward                // of the micro-batch
)

// DefaultBucket is the least size of a bucket, that of PyTorch's DistributedDataParallel.
const DefaultBucket = 25 * unit.MiB

// Options say where the state of a model lies and how it is updated. Zero values choose defaults; Algorithm has none.
type Options struct {
	Stage     Stage
	Hybrid    int // ranks to shard over, replicating across such groups; 0 means all
	Ownership Ownership
	Mode      Mode
	Bucket    unit.Bytes // least size of a bucket, at stages 0 and 1; 0 means DefaultBucket
	Prefetch  int        // units gathered ahead, at stage 3
	Reshard   Reshard
	Algorithm Algorithm
	// Twins lists the pipeline coordinates that hold a unit of the given name, in ascending order, where there are
	// several: a tied token table, or every unit under DualPipe. nil means that no unit has twins.
	Twins func(name string) []int
}

// ClipScale is the factor that brings a gradient of the given norm down to the limit: 1 when it is below, or when
// the limit is 0 (no clipping).
func ClipScale(norm, limit float64) float64 {
	if limit <= 0 || !(norm > limit) {
		return 1
	}
	return limit / norm
}

// Storage is the memory that a model must be built with.
func (o Options) Storage() nn.Storage {
	switch {
	case o.Stage >= ShardParameters:
		return nn.NoStorage
	case o.Stage == ShardGradients:
		return nn.ValuesOnly
	}
	return nn.ValuesAndGradients
}

// check lists what cannot be done.
func (o Options) check(r *nn.Rank, m *nn.Model) error {
	var faults []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("optim: "+format, args...))
		}
	}
	refuse(o.Algorithm == nil, "no algorithm; give AdamWOptions, SGDOptions or MuonOptions")
	refuse(o.Stage > ShardParameters, "zero stage %d; use 0 to 3", o.Stage)
	refuse(o.Hybrid < 0 || o.Prefetch < 0 || o.Bucket < 0, "hybrid %d, prefetch %d, bucket %v; use 0 or more", o.Hybrid, o.Prefetch, o.Bucket)
	refuse(o.Mode == Server && o.Stage > Replicated, "a parameter server owns all state, and zero stage %d shards it; use stage 0", o.Stage)
	refuse((o.Storage() < nn.NoStorage) != (m.Value != nil) || (o.Storage() < nn.ValuesOnly) != (m.Grad != nil),
		"a model that was built with other storage than zero stage %d needs; build it with Options.Storage", o.Stage)
	if o.Algorithm != nil {
		faults = append(faults, o.Algorithm.check(r, o))
	}
	return errors.Join(faults...)
}
