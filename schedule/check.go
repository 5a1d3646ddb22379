package schedule

import (
	"fmt"
	"strings"
)

// Report is what Check found. Peaks count micro-batches times chunks: passes whose activations a rank keeps.
type Report struct {
	Actions      int
	DeadlockFree bool  // proved; false where an earlier fault kept Check from asking
	PeakInFlight []int // [rank]: forward has run, the gradient of the input has not
	PeakHeld     []int // [rank]: forward has run, the gradients of the weights have not
	PeakDeferred []int // [rank]: the gradient of the input has run, those of the weights have not
}

// Check proves that a program is whole and can be executed: each micro-batch passes each stage of its pipe once forward
// and once backward, its weight gradients are added once, everything comes after what it needs, sends and receives pair up in order, and no
// ranks wait for each other. It takes time linear in the number of actions, and says where and how to mend what it
// refuses: the error is Faults.
func Check(p *Program) (Report, error) {
	report := Report{Actions: p.Actions()}
	route, fault := placed(p)
	if fault != nil {
		return report, Faults{fault}
	}
	var faults Faults
	for rank := range p.Ranks {
		s := newScan(p, route, rank)
		if fault := s.run(); fault != nil {
			faults = append(faults, fault)
		}
		report.PeakInFlight = append(report.PeakInFlight, s.peak.inFlight)
		report.PeakHeld = append(report.PeakHeld, s.peak.held)
		report.PeakDeferred = append(report.PeakDeferred, s.peak.deferred)
	}
	if faults == nil {
		faults = flow(p, route)
		report.DeadlockFree = faults == nil || faults[len(faults)-1].Rule != RuleDeadlock
	}
	if faults != nil {
		return report, faults
	}
	return report, nil
}

// placed checks where stages live and which way micro-batches go.
func placed(p *Program) (*Route, *Fault) {
	if len(p.Stages) != len(p.Ranks) {
		return nil, &Fault{Rule: RulePlacement, Message: fmt.Sprintf("%d ranks have stages and %d have actions; give each rank both", len(p.Stages), len(p.Ranks))}
	}
	route, err := p.Route()
	if err != nil {
		return nil, &Fault{Rule: RulePlacement, Message: strings.TrimPrefix(err.Error(), "schedule: ")}
	}
	for micro, pipe := range p.Pipes {
		if pipe < 0 || pipe >= route.Pipes() {
			return nil, &Fault{Rule: RulePlacement, Message: fmt.Sprintf("micro-batch %d travels pipe %d; use 0 to %d", micro, pipe, route.Pipes()-1)}
		}
	}
	return route, nil
}

// flow checks what ranks do to each other. The scans have shown that each of them sends and receives the right
// messages once; so what can still be wrong is their order on a channel, and that ranks wait in a circle.
func flow(p *Program, route *Route) (faults Faults) {
	crossed := map[channel]bool{}
	w := newWalker(p)
	w.walk(func(at, sender spot) {
		if at == sender {
			return
		}
		got, sent := p.Ranks[at.rank][at.index], p.Ranks[sender.rank][sender.index]
		c := got.channel(at.rank)
		if target, _ := route.Peer(Place{sender.rank, sent.Chunk}, sent.Op); crossed[c] || got.Micro == sent.Micro && target.Chunk == got.Chunk {
			return
		}
		crossed[c] = true
		faults = append(faults, &Fault{
			RuleMatch, at.rank, at.index, got,
			fmt.Sprintf("the next message from rank %d is that of its action %d, %s; receive in the order of sending", sender.rank, sender.index, sent),
		})
	})
	if stuck := w.stuck(); len(stuck) > 0 {
		faults = append(faults, w.circle(stuck[0]))
	}
	return faults
}

// circle describes the ranks that wait for each other, found from one that is stuck.
func (w *walker) circle(rank int) *Fault {
	waiting := func(rank int) Action { return w.program.Ranks[rank][w.next[rank]] }
	seen := make([]bool, len(w.program.Ranks))
	for !seen[rank] { // lead into the circle
		seen[rank] = true
		rank = waiting(rank).Peer
	}
	var text strings.Builder
	for at := rank; ; {
		a := waiting(at)
		fmt.Fprintf(&text, "rank %d waits at action %d for rank %d, ", at, w.next[at], a.Peer)
		if at = a.Peer; at == rank {
			break
		}
	}
	text.WriteString("in a circle; move a send that one of them waits for before the receive that keeps it back")
	return &Fault{RuleDeadlock, rank, w.next[rank], waiting(rank), text.String()}
}
