package parallel

import (
	"errors"
	"fmt"
	"runtime/debug"

	"carve/nn"
	"carve/plan"
	"carve/schedule"
)

// joinSecond makes what the backward of a pair needs to run beside the forward, if the schedule has pairs and the layers
// communicate. Where gradients or parameters are sharded it does not: each half lends and gathers units, in an order
// that must be the same on every rank.
func (l *pipeline) joinSecond() error {
	g := l.engine.rank.Groups
	pairs := false
	for _, a := range l.actions {
		pairs = pairs || a.Op == schedule.Pair
	}
	lent := l.engine.plan.Layout.Zero.Stage >= plan.ShardGradients
	if !pairs || lent || g.Tensor == nil && g.Context == nil && g.Expert == nil {
		return nil
	}
	second, err := g.Second(l.engine.rank.Mesh)
	l.second, l.other = &second, make(chan error, 1)
	return err
}

// pair runs a forward and a backward of two micro-batches. Where the layers communicate, each has a goroutine, and
// whichever waits for other ranks lets the other one compute: dispatch and combine of experts, and the collectives of
// the tensor and context axes, hide behind the other micro-batch.
func (l *pipeline) pair(a schedule.Action, ready nn.Ready) error {
	l.engine.enter(Both)
	if l.second == nil {
		l.forward(a.Micro, a.Chunk)
		l.backward(l.rank, a.With, ready)
		return nil
	}
	go l.beside(a.With, ready)
	mine := guarded(func() { l.forward(a.Micro, a.Chunk) })
	token := l.rank.Token
	token.Release()
	others := <-l.other
	token.Acquire()
	return errors.Join(mine, others)
}

// beside runs the backward of a pair with groups of its own.
func (l *pipeline) beside(h schedule.Half, ready nn.Ready) {
	l.rank.Token.Acquire()
	defer l.rank.Token.Release()
	r := *l.rank
	r.Groups = *l.second
	l.other <- guarded(func() { l.backward(&r, h, ready) })
}

// guarded runs one of two goroutines of a rank. A panic becomes an error, so that the rank ends as one.
func guarded(work func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("parallel: panic: %v\n%s", v, debug.Stack())
		}
	}()
	return nn.Guard(work)
}
