package train

import (
	"encoding/json"
	"fmt"
	"slices"

	"carve/checkpoint"
	"carve/mesh"
	"carve/tensor"
	"carve/unit"
)

// held is a tensor of the state that a rank holds.
type held struct {
	name   string
	kind   string // of file: "model" or "optimizer"
	shape  []int  // of the global tensor
	region mesh.Region
	tensor *tensor.Tensor
}

// holdings lists the state of this rank: parameters under their Hugging Face names, and what the optimizer remembers
// of them as optimizer.KIND.NAME.
func (w *worker) holdings() []held {
	var all []held
	for _, p := range w.model.Params() {
		all = append(all, held{p.Name, "model", p.Shape, p.Region, p.Value})
	}
	for _, s := range w.optimizer.States() {
		all = append(all, held{optimizerName(string(s.Kind), s.Param.Name), "optimizer", s.Param.Shape, s.Param.Region, s.Tensor})
	}
	return all
}

// optimizerName is the name of an optimizer's tensor in a checkpoint.
func optimizerName(kind, param string) string { return "optimizer." + kind + "." + param }

// ledger is where the ranks of this process tell each other what they hold and what they have written. A rank writes
// its own entry and reads others after a barrier.
type ledger struct {
	holds  [][]string // by rank: keys of blocks
	shards [][]checkpoint.Tensor
}

// key names a block of a tensor.
func (h held) key() string { return fmt.Sprint(h.name, h.region) }

// enrol tells the others what this rank holds, and learns which of it this rank writes: what no lower rank holds.
func (w *worker) enrol() error {
	all := w.holdings()
	keys := make([]string, len(all))
	for i, h := range all {
		keys[i] = h.key()
	}
	w.job.ledger.holds[w.end.Rank()] = keys
	if err := w.world.Barrier(); err != nil {
		return err
	}
	lower := map[string]bool{}
	for _, other := range w.job.ledger.holds[:w.end.Rank()] {
		for _, k := range other {
			lower[k] = true
		}
	}
	for i, h := range all {
		if !lower[keys[i]] {
			w.owned = append(w.owned, h)
		}
	}
	return nil
}

// save writes a checkpoint of the state after a step, and returns when it is in place.
func (w *worker) save(step int) error {
	w.enter(saving)
	start := w.job.now()
	if !w.rank.Dev.Finite(w.model.Value) {
		return w.explain("a parameter is not finite")
	}
	pending := checkpoint.New(w.job.dir.Checkpoints(), step)
	err := w.write(pending, step)
	if err != nil {
		if w.leads() {
			_ = pending.Abort() // what is left is swept by the next checkpoint
		}
		return err
	}
	if w.leads() {
		w.report.saved(Saved{
			Step: step, Path: pending.Path(), Bytes: w.job.stateBytes(), Elapsed: seconds(w.job.now() - start),
		})
	}
	return nil
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
	for _, kind := range []string{"model", "optimizer"} {
		var entries []checkpoint.Entry
		for _, h := range w.owned {
			if h.kind == kind {
				entries = append(entries, checkpoint.Entry{
					Name: h.name, DType: h.tensor.DType(), Shape: h.shape, Region: h.region, Data: h.tensor.Raw(),
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
	for _, h := range w.holdings() {
		if err := c.ReadRegion(h.name, h.tensor.DType(), h.shape, h.region, h.tensor.Raw()); err != nil {
			return err
		}
	}
	w.optimizer.Restore(c.Step)
	return nil
}

// stateBytes is the size of a checkpoint's tensors.
func (j *job) stateBytes() unit.Bytes {
	m := checkpoint.Manifest{Tensors: checkpoint.Merge(slices.Clone(j.ledger.shards)...)}
	return unit.Bytes(m.Bytes())
}
