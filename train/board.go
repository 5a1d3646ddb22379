package train

import (
	"carve/comm"
	"carve/nn"
	"carve/tensor"
	"carve/unit"
)

// The numbers that a rank tells all others after every step.
const (
	lossSlot   = iota // sum over the rank's tokens
	waitSlot          // nanoseconds of waiting for data
	exposeSlot        // nanoseconds of waiting for communication
	stopSlot          // 1 when rank 0 was asked to stop
	stepsSlot         // number of steps of the run, once rank 0 has chosen it; else 0
	memorySlot        // bytes by category at the rank's peak, from here on
)

// board is where ranks read each other's numbers after a step, so that all of them decide alike.
type board struct {
	group *comm.Group
	mine  *tensor.Tensor // fp64 [slots]
	all   *tensor.Tensor // fp64 [world slots]
	slots int
}

func newBoard(r *nn.Rank, world *comm.Group) *board {
	slots := memorySlot + len(tensor.Categories())
	return &board{
		group: world, slots: slots,
		mine: r.Arena.New(tensor.Communication, tensor.FP64, slots),
		all:  r.Arena.New(tensor.Communication, tensor.FP64, world.Size(), slots),
	}
}

// exchange tells every rank the numbers of every other.
func (b *board) exchange() error {
	if b.group.Size() == 1 {
		copy(b.all.F64(), b.mine.F64())
		return nil
	}
	return b.group.AllGather(b.all, b.mine)
}

// sum adds a slot over the ranks, in their order.
func (b *board) sum(slot int) (sum float64) {
	all := b.all.F64()
	for r := range b.group.Size() {
		sum += all[r*b.slots+slot]
	}
	return sum
}

// first is a slot of rank 0.
func (b *board) first(slot int) float64 { return b.all.F64()[slot] }

// mean is a slot of nanoseconds, averaged over the ranks.
func (b *board) mean(slot int) unit.Seconds {
	return unit.Seconds(b.sum(slot) / float64(b.group.Size()) / 1e9)
}

// memory is the ranks' peaks added up.
func (b *board) memory() (u tensor.Usage) {
	for i, c := range tensor.Categories() {
		u[c] = unit.Bytes(b.sum(memorySlot + i))
	}
	return u
}

// publish writes this rank's numbers of a step and exchanges them. stop and steps count on rank 0 only.
func (w *worker) publish(stop bool, steps int) error { //nolint:revive // a number that is sent, not a way to behave
	w.enter(exchanging)
	mine := w.board.mine.F64()
	mine[lossSlot] = w.loss
	mine[waitSlot] = float64(w.waited.Nanoseconds())
	mine[exposeSlot] = float64(w.end.Waited()-w.exposed) * 1e9
	mine[stopSlot], mine[stepsSlot] = 0, float64(steps)
	if stop {
		mine[stopSlot] = 1
	}
	peak := w.rank.Arena.Peak().Usage
	for i, c := range tensor.Categories() {
		mine[memorySlot+i] = float64(peak.Of(c))
	}
	return w.board.exchange()
}
