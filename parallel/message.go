package parallel

import (
	"carve/comm"
	"carve/schedule"
	"carve/tensor"
)

// post posts the receives up to the second computation from action i on, so that what the next one needs travels while
// this one runs.
func (l *pipeline) post(i int) {
	computations := 0
	for l.posted = max(l.posted, 0); l.posted < len(l.actions); l.posted++ {
		a := l.actions[l.posted]
		if !a.Op.Communicates() && l.posted >= i {
			if computations++; computations == 2 {
				return
			}
		}
		f := l.flight(a)
		switch a.Op {
		case schedule.RecvActivation:
			f.x, f.xWork = l.receive(l.activations, a)
		case schedule.RecvGradient:
			f.dy, f.dyWork = l.receive(l.gradients, a)
		case schedule.Forward, schedule.Backward, schedule.Input, schedule.Weight, schedule.Pair, schedule.SendActivation, schedule.SendGradient:
		}
	}
}

// receive starts to receive the input of a stage, or the gradient of its output.
func (l *pipeline) receive(g *comm.Group, a schedule.Action) (*tensor.Tensor, comm.Work) {
	r, b := l.engine.rank, l.engine.batches
	t := r.Arena.New(tensor.Activation, r.DType, b.rows(r), l.engine.plan.Model.Config.Hidden)
	return t, g.RecvStart(t, a.Peer)
}

// send starts to send a tensor, and takes it over. Action i is the send.
func (l *pipeline) send(i int, g *comm.Group, t *tensor.Tensor, peer int) {
	l.sends = append(l.sends, sending{t, g.SendStart(t, peer), l.taken[i]})
}

// reap frees the messages of which action i, which has run, tells that the neighbours have taken them. It waits for nobody. Those
// that were taken earlier stay until then, so that the memory of a rank does not depend on timing.
func (l *pipeline) reap(i int) (err error) {
	kept := l.sends[:0]
	for _, s := range l.sends {
		if s.until > i || err != nil {
			kept = append(kept, s)
			continue
		}
		if err = s.work.Wait(); err == nil {
			s.t.Free()
		}
	}
	l.sends = kept
	return err
}

// drain waits until the neighbours have taken everything.
func (l *pipeline) drain() error {
	if len(l.sends) > 0 {
		l.engine.enter(Sending)
	}
	for _, s := range l.sends {
		if err := s.work.Wait(); err != nil {
			return err
		}
		s.t.Free()
	}
	l.sends = l.sends[:0]
	return nil
}
