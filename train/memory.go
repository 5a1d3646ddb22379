package train

import (
	"context"
	"errors"
	"fmt"

	"carve/data"
	"carve/mesh"
	"carve/parallel"
	"carve/plan"
	"carve/tensor"
	"carve/unit"
)

// LeastMemory is what all ranks of a plan together hold at the least while they train: parameters, gradients and
// optimizer state, without activations, workspace and buffers. It says early what cannot fit; it is no price.
//
//	parameters and gradients  P·C·2·w             w bytes of the precision, C copies of a parameter
//	optimizer state           P·C·(m·v + master)  v = max(w, 4), m = 2 for AdamW and 1 else, master 4 under bf16
//
// C is 1 where stages 1 (state), 2 (gradients) and 3 (parameters) shard over all copies, and for Muon's matrices.
func LeastMemory(p plan.Plan) unit.Bytes {
	n := p.Model.Config.Parameters().Total()
	w := unit.Bytes(parallel.DType(p.Precision).Size())
	state := max(w, 4) * moments(p.Optimizer)
	if p.Precision == plan.BF16 {
		state += 4
	}
	copies := func(from plan.Stage) unit.Bytes { // of what is sharded from a stage on
		if p.Layout.Zero.Stage >= from {
			return 1
		}
		return unit.Bytes(p.Layout.Degrees.Over(mesh.ExpertData)) // of an expert; there are no fewer of others
	}
	owners := copies(plan.ShardOptimizer)
	if p.Optimizer.Name == plan.Muon {
		owners = 1
	}
	return unit.Bytes(n) * (w*copies(plan.ShardParameters) + w*copies(plan.ShardGradients) + state*owners)
}

// moments is how many numbers of full precision an optimizer remembers of a parameter, at the least.
func moments(o plan.Optimizer) unit.Bytes {
	switch o.Name {
	case plan.AdamW:
		return 2
	case plan.Muon:
		return 1
	case plan.SGD:
		if o.Momentum > 0 {
			return 1
		}
	}
	return 0
}

// fits refuses a plan whose state alone is more than there is memory for.
func (o Options) fits(p plan.Plan) error {
	world := p.Layout.World()
	need := LeastMemory(p)
	what := fmt.Sprintf("%v parameters on %d ranks in %v need at least %v for parameters, gradients and optimizer state",
		p.Model.Config.Parameters().Total(), world, p.Precision, need)
	if o.Memory > 0 && need > o.Memory {
		return fmt.Errorf("train: %s, and this machine has %v of memory available; use a smaller model, fewer ranks or bf16", what, o.Memory)
	}
	if each := need / unit.Bytes(world); o.ArenaLimit > 0 && each > o.ArenaLimit {
		return fmt.Errorf("train: %s: %v a rank, and --arena-limit allows %v; use a smaller model or a higher --arena-limit", what, each, o.ArenaLimit)
	}
	return nil
}

// outOfMemory tells whether an error is that of an arena's limit or of the system's memory.
func outOfMemory(err error) bool {
	var (
		limit  *tensor.LimitError
		system *tensor.SystemError
	)
	return errors.As(err, &limit) || errors.As(err, &system)
}

// blame sorts the errors of ranks: what went wrong before the first step lies in what the user gave, as do the limit of an
// arena and damaged tokens; the rest failed while it ran.
func blame(err error) error {
	var (
		at    *StepError
		limit *tensor.LimitError
	)
	early := errors.As(err, &at) && at.Step == 0 && (at.Operation == building.String() || at.Operation == restoring.String())
	if early && !errors.Is(err, context.Canceled) || errors.As(err, &limit) || errors.Is(err, data.ErrShard) {
		return input(err)
	}
	return err
}
