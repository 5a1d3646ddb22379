package comm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carve/comm"
	"carve/comm/commtest"
	"carve/comm/flight"
	"carve/tensor"
)

func TestWatchdogConformance(t *testing.T) {
	commtest.Run(t, commtest.Suite{Sizes: []int{1, 3}, New: func(n int) commtest.World {
		l := comm.NewLocal(n, comm.LocalOptions{})
		dog := comm.NewWatchdog(comm.WatchdogOptions{Keep: 3})
		ends := l.Endpoints()
		for i := range ends {
			ends[i] = dog.Watch(ends[i])
		}
		return commtest.World{Endpoints: ends, Close: l.Close}
	}})
}

// drillStep is one step of a drill's program, the same on all ranks.
type drillStep struct {
	group string
	op    comm.Op // Send stands for a message to the next member and one from the member before
	count int
	later bool // started, and waited for at the end of the step after
}

// named tells whether a report names the step.
func (s drillStep) named(h flight.Hang) bool {
	what := fmt.Sprintf("fp32[%d]", s.count)
	ok := h.Op == strings.ReplaceAll(s.op.String(), "-", "_") || s.op == comm.Send && h.Op == "recv"
	return ok && h.Group == s.group && (s.op == comm.Barrier || strings.HasSuffix(h.What, what))
}

// fault is what a drill plants.
type plantedFault int

const (
	skips plantedFault = iota
	reorders
	wrongShape
	dies
	sleeps
	numPlanted
)

func (f plantedFault) String() string {
	return [...]string{"skips", "reorders", "wrong shape", "dies", "sleeps"}[f]
}

// drill is a random program with a fault of one rank at one step.
type drill struct {
	ranks   int
	program []drillStep
	fault   plantedFault
	culprit int
	at      int
}

// groupsOf are the members of a rank's groups.
func groupsOf(rank, n int) map[string][]int {
	groups := map[string][]int{"all": nil}
	for r := range n {
		groups["all"] = append(groups["all"], r)
		if n%2 > 0 {
			continue
		}
		if r/2 == rank/2 {
			groups["tp"] = append(groups["tp"], r)
		}
		if r%2 == rank%2 {
			groups["dp"] = append(groups["dp"], r)
		}
	}
	return groups
}

// newDrill draws a drill whose fault makes a difference: no two neighbours of one group are alike, and what is swapped
// cannot be done in either order.
func newDrill(random *rand.Rand, fault plantedFault) drill {
	ops := []comm.Op{comm.Barrier, comm.AllReduce, comm.AllGather, comm.ReduceScatter, comm.AllToAll, comm.Broadcast, comm.Gather, comm.Send}
	d := drill{ranks: []int{3, 4, 6}[random.IntN(3)], fault: fault}
	names := []string{"all", "tp", "dp"}
	if d.ranks == 3 {
		names = names[:1]
	}
	for i := range 12 + random.IntN(12) {
		d.program = append(d.program, drillStep{
			group: names[random.IntN(len(names))], op: ops[random.IntN(len(ops))], count: 100*i + 1 + random.IntN(90), later: random.IntN(3) == 0,
		})
	}
	d.culprit = random.IntN(d.ranks)
	for {
		d.at = 1 + random.IntN(len(d.program)-2)
		a, b := &d.program[d.at], &d.program[d.at+1]
		switch {
		case fault == wrongShape && a.op == comm.Barrier:
		case fault == skips && a.op == comm.Barrier && a.op == b.op:
		case fault == reorders && (a.op == comm.Barrier && b.op == comm.Barrier || a.group != b.group && a.group != "all" && b.group != "all"):
		case fault == reorders && (a.op == comm.Send || b.op == comm.Send):
		default:
			if fault == reorders {
				a.later, b.later = false, false
			}
			return d
		}
	}
}

var errDied = errors.New("died")

// run is a drill on one rank. Where the fault is, the rank is late, so that the others have come as far as they can
// without it.
func (d drill) run(e comm.Endpoint, a *tensor.Arena) error {
	groups := map[string]*comm.Group{}
	for name, ranks := range groupsOf(e.Rank(), d.ranks) {
		g, err := e.Group(name, ranks)
		if err != nil {
			return err
		}
		groups[name] = g
	}
	order := d.program
	var due comm.Work
	for i := 0; i < len(order); i++ {
		s := order[i]
		if e.Rank() == d.culprit && i == d.at {
			wait := time.Millisecond
			if d.fault == sleeps {
				wait = time.Hour
			}
			<-time.After(wait)
			switch d.fault {
			case skips:
				continue
			case dies:
				return errDied
			case wrongShape:
				s.count++
			case reorders:
				order = append([]drillStep{}, order...)
				order[i], order[i+1] = order[i+1], order[i]
				s = order[i]
			case sleeps, numPlanted:
			}
		}
		work := s.start(groups[s.group], a)
		if err := due.Wait(); err != nil {
			return err
		}
		if due = work; s.later {
			continue
		}
		if err := due.Wait(); err != nil {
			return err
		}
	}
	return due.Wait()
}

// start starts the step.
func (s drillStep) start(g *comm.Group, a *tensor.Arena) comm.Work {
	n := g.Size()
	small, big, other := a.NewZero(tensor.Communication, tensor.FP32, s.count), a.NewZero(tensor.Communication, tensor.FP32, s.count*n), a.NewZero(tensor.Communication, tensor.FP32, s.count*n)
	switch s.op {
	case comm.AllReduce:
		return g.AllReduceStart(small, tensor.Sum)
	case comm.AllGather:
		return g.AllGatherStart(big, small)
	case comm.ReduceScatter:
		return g.ReduceScatterStart(small, big, tensor.Sum)
	case comm.AllToAll:
		return g.AllToAllStart(other, big)
	case comm.Broadcast:
		return g.BroadcastStart(small, 0)
	case comm.Gather:
		return g.GatherStart(big, small, 0)
	case comm.Send:
		other = other.Slice(0, s.count)
		send, recv := g.SendStart(small, (g.Rank()+1)%n), g.RecvStart(other, (g.Rank()+n-1)%n)
		return comm.NewWork(both{send, recv}, 0)
	default:
		return g.BarrierStart()
	}
}

// both is two operations.
type both struct{ a, b comm.Work }

func (w both) Await(uint64) error { return errors.Join(w.a.Wait(), w.b.Wait()) }
func (w both) Done(uint64) bool   { return w.a.Done() && w.b.Done() }

// TestHangDrill plants one fault in each of 100 random programs: the report must name the rank and the operation, and a
// hang must be noticed within the limit and a second. The clock is that of a bubble, so nothing depends on the machine.
func TestHangDrill(t *testing.T) {
	const limit = 5 * time.Second
	for i := range 100 {
		d := newDrill(rand.New(rand.NewPCG(1, uint64(i))), plantedFault(i)%numPlanted)
		t.Run(fmt.Sprintf("%d %v", i, d.fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { d.check(t, limit) })
		})
	}
}

func (d drill) check(t *testing.T, limit time.Duration) {
	dog := comm.NewWatchdog(comm.WatchdogOptions{Limit: limit})
	l := comm.NewLocal(d.ranks, comm.LocalOptions{})
	ends := l.Endpoints()
	for i := range ends {
		ends[i] = dog.Watch(ends[i])
	}
	arena := tensor.NewArena(tensor.ArenaOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	go dog.Run(ctx)
	err := comm.Run(ctx, ends, func(e comm.Endpoint) error { return d.run(e, arena) })
	cancel()
	_ = l.Close() // messages that nobody took are part of the fault
	if err == nil {
		t.Fatalf("no error: rank %d at step %d of %+v", d.culprit, d.at, d.program)
	}
	text, err2 := flight.Encode(dog.Record(err))
	record, err3 := flight.Parse(text)
	if err2 != nil || err3 != nil {
		t.Fatal(err2, err3)
	}
	h, ok := flight.Diagnose(record)
	step, before := d.program[d.at], d.program[d.at-1]
	held := before.later && h.Kind == flight.Stalled && before.named(h) // started, and the others need its end first
	if !ok || h.Culprit != d.culprit || !step.named(h) && !held {
		t.Errorf("rank %d, step %d, %+v\nerror: %v\nreport: %v", d.culprit, d.at, step, err, h)
	}
	if hang, hung := errors.AsType[*comm.HangError](err); hung && time.Duration(hang.Hang.Waited) > limit+time.Second {
		t.Errorf("noticed after %v", time.Duration(hang.Hang.Waited))
	}
}
