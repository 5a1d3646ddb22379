package train

import (
	"encoding/json"
	"slices"

	"carve/checkpoint"
	"carve/optim"
	"carve/parallel"
	"carve/unit"
)

// held is a block of the state that a rank holds.
type held struct {
	optim.Piece
	kind string // of file
	name string
}

// The kinds of files of a checkpoint.
const (
	modelFile     = "model"
	optimizerFile = "optimizer"
)

// holdingsOf lists the state of a rank: parameters under their Hugging Face names, and what the optimizer remembers
// of them as optimizer.KIND.NAME.
func holdingsOf(e *parallel.Engine) (all []held) {
	s := e.State()
	for _, p := range s.Parameters() {
		all = append(all, held{p, modelFile, p.Param.Name})
	}
	for _, p := range s.States() {
		all = append(all, held{p, optimizerFile, optimizerName(string(p.Kind), p.Param.Name)})
	}
	return all
}

// optimizerName is the name of an optimizer's tensor in a checkpoint.
func optimizerName(kind, param string) string { return "optimizer." + kind + "." + param }

// ledger is where the ranks of this process tell each other what they have written. A rank writes its own entry and reads
// others after a barrier.
type ledger struct {
	shards [][]checkpoint.Tensor
}

// save writes a checkpoint of the state after a step, and returns when it is in place.
func (w *worker) save(step int) error {
	w.enter(saving)
	start := w.job.now()
	finite, err := w.everywhere(w.finite())
	if err != nil {
		return err
	}
	if !finite {
		return w.explain("a parameter is not finite")
	}
	pending := checkpoint.New(w.job.dir.Checkpoints(), step)
	if w.leads() {
		w.pending = pending
	}
	if err := w.write(pending, step); err != nil {
		return err
	}
	if w.leads() {
		w.pending = nil
		w.report.saved(Saved{
			Step: step, Path: pending.Path(), Bytes: w.job.stateBytes(), Elapsed: seconds(w.job.now() - start),
		})
	}
	return nil
}

// finite tells whether the parameters that this rank holds are.
func (w *worker) finite() bool {
	for _, h := range w.holdings {
		if h.kind == modelFile && !w.rank.Dev.Finite(h.Tensor) {
			return false
		}
	}
	return true
}

// write has every rank write its shard between two barriers, and rank 0 put the checkpoint in place.
func (w *worker) write(pending *checkpoint.Pending, step int) error {
	if w.leads() {
		if err := pending.Begin(); err != nil {
			return err
		}
	}
	if err := w.world.Barrier(); err != nil {
		return err
	}
	shard, err := w.writeShards(pending)
	if err != nil {
		return err
	}
	w.job.ledger.shards[w.end.Rank()] = shard
	if err := w.world.Barrier(); err != nil {
		return err
	}
	if w.leads() {
		if err := w.commit(pending, step); err != nil {
			return err
		}
	}
	return w.world.Barrier()
}

// writeShards writes the blocks that this rank owns, a file for each kind.
func (w *worker) writeShards(pending *checkpoint.Pending) (shard []checkpoint.Tensor, err error) {
	for _, kind := range []string{modelFile, optimizerFile} {
		var entries []checkpoint.Entry
		for _, h := range w.holdings {
			if h.kind == kind && h.Owned {
				entries = append(entries, checkpoint.Entry{
					Name: h.name, DType: h.Tensor.DType(), Shape: h.Param.Shape, Region: h.Region, Data: h.Tensor.Raw(),
				})
			}
		}
		tensors, err := pending.WriteShard(kind, w.end.Rank(), entries)
		if err != nil {
			return nil, err
		}
		shard = append(shard, tensors...)
	}
	return shard, nil
}

// commit puts the checkpoint in place and removes those that are too old.
func (w *worker) commit(pending *checkpoint.Pending, step int) error {
	position, err := json.Marshal(position{w.samples.State(), w.job.held})
	if err != nil {
		return err
	}
	m := &checkpoint.Manifest{
		State: checkpoint.State{
			Step: step, Tokens: int64(step) * int64(w.plan.StepTokens()), Seed: w.plan.Seed, Plan: planHash(w.plan), Data: position,
		},
		Tensors: checkpoint.Merge(w.job.ledger.shards...),
	}
	if err := pending.Commit(m); err != nil {
		return err
	}
	return checkpoint.Retain(w.job.dir.Checkpoints(), step, w.plan.Checkpoint.Keep)
}

// restore reads the state from a checkpoint.
func (w *worker) restore(c *checkpoint.Checkpoint) error {
	w.enter(restoring)
	for _, h := range w.holdings {
		if err := c.ReadRegion(h.name, h.Tensor.DType(), h.Param.Shape, h.Region, h.Tensor.Raw()); err != nil {
			return err
		}
	}
	w.state.Restore(c.Step)
	return nil
}

// stateBytes is the size of a checkpoint's tensors.
func (j *job) stateBytes() unit.Bytes {
	m := checkpoint.Manifest{Tensors: checkpoint.Merge(slices.Clone(j.ledger.shards)...)}
	return unit.Bytes(m.Bytes())
}
