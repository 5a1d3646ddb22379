package sim

import (
	"carve/mesh"
	"carve/schedule"
	"carve/unit"
)

// process is one stage's rank on its way through its list.
type process struct {
	*simulation
	stage  int
	work   *Work
	factor float64 // of computing

	now     unit.Seconds
	ports   [maxLevels]unit.Seconds // free from then on
	next    int                     // action
	items   []Item                  // of the action that has begun, what is left
	begun   bool
	paired  bool
	tail    bool // the list has ended, the tail has begun
	begin   unit.Seconds
	counts  map[key]int
	seen    map[key]int
	started map[int][]flight // by group
	numbers map[int]int      // of shared collectives, by group
	account Stage
}

// maxLevels is the most levels that a cluster has.
const maxLevels = 8

// flight is a collective that was started.
type flight struct {
	item   Item
	end    unit.Seconds
	shared *met // of several stages, or nil
}

func (p *process) ended() bool { return p.tail && len(p.items) == 0 }

// advance goes on until the end or until somebody else is needed, and tells whether it moved.
func (p *process) advance() (moved bool, err error) {
	list := p.program.Ranks[p.stage]
	for !p.ended() {
		switch {
		case p.begun || p.tail:
			n := len(p.items)
			p.consume()
			moved = moved || len(p.items) < n || n == 0
			if len(p.items) > 0 {
				return moved, nil
			}
			if p.begun {
				p.finish(list[p.next])
			}
		case p.next == len(list):
			p.tail, p.items, p.paired = true, p.work.tail, false
			moved = true
		default:
			ok, err := p.enter(list[p.next])
			if err != nil || !ok {
				return moved, err
			}
			moved = true
		}
	}
	return moved, nil
}

// enter begins an action, or says that it cannot yet.
func (p *process) enter(a schedule.Action) (ok bool, err error) {
	switch a.Op {
	case schedule.SendActivation, schedule.SendGradient:
		p.send(a)
		p.next++
		return true, nil
	case schedule.RecvActivation, schedule.RecvGradient:
		if !p.receive(a) {
			return false, nil
		}
		p.next++
		return true, nil
	case schedule.Forward, schedule.Backward, schedule.Input, schedule.Weight, schedule.Pair:
	}
	k := keyOf(a)
	p.items, err = p.work.of(a, p.seen[k], p.counts[k])
	p.seen[k]++
	p.begun, p.paired, p.begin = true, a.Op == schedule.Pair, p.now
	return true, err
}

// finish ends an action.
func (p *process) finish(a schedule.Action) {
	p.begun = false
	p.next++
	p.watch(Span{Name: a.String(), Kind: Compute, Start: p.begin, End: p.now})
}

func (p *process) watch(s Span) {
	if p.options.Watch != nil {
		s.Stage = p.stage
		p.options.Watch(s)
	}
}

// consume carries items out until one has to wait for another stage.
func (p *process) consume() {
	if p.paired {
		p.pair()
		return
	}
	for len(p.items) > 0 {
		if !p.do(p.items[0]) {
			return
		}
		p.items = p.items[1:]
	}
}

// do carries one item out, or says that it has to wait for another stage.
func (p *process) do(i Item) bool {
	switch i.Kind {
	case Compute:
		p.compute(i)
	case Start:
		p.start(i)
	case Blocking:
		if i.Stages > 1 { // comes once, and may wait here
			p.start(i)
			p.items = append([]Item{{Kind: Wait, Axis: i.Axis, Group: i.Group}}, p.items[1:]...)
			return p.wait(p.items[0])
		}
		p.start(i)
		return p.wait(i)
	case Wait:
		return p.wait(i)
	}
	return true
}

func (p *process) compute(i Item) {
	d := i.Seconds * unit.Seconds(p.factor)
	p.now += d
	p.account.Compute += d
	p.account.FLOPs += i.FLOPs
}

// start issues a collective.
func (p *process) start(i Item) {
	f := flight{item: i}
	if i.Stages > 1 {
		m := meeting{p.work.Groups[i.Group], p.numbers[i.Group]}
		p.numbers[i.Group]++
		if p.meetings[m] == nil {
			p.meetings[m] = &met{}
		}
		f.shared = p.meetings[m]
		f.shared.come++
		f.shared.last = max(f.shared.last, p.now, p.ports[i.Level])
	} else {
		f.end = p.occupy(i)
	}
	p.started[i.Group] = append(p.started[i.Group], f)
}

// occupy uses a port from when it is free, and returns until when.
func (p *process) occupy(i Item) unit.Seconds {
	if i.Level == noPort {
		return p.now + i.Seconds
	}
	begin := max(p.now, p.ports[i.Level])
	end := begin + i.Seconds
	p.ports[i.Level] = end
	if i.Seconds > 0 {
		p.watch(Span{Name: i.Name, Kind: Blocking, Axis: i.Axis, Start: begin, End: end})
	}
	return end
}

// wait waits for the oldest collective of a group, or says that others have not come yet.
func (p *process) wait(i Item) bool {
	queue := p.started[i.Group]
	if len(queue) == 0 {
		return true
	}
	f := queue[0]
	if f.shared != nil {
		if f.shared.come < f.item.Stages {
			return false
		}
		if late := f.shared.last - p.now; late > 0 {
			p.account.Bubble += late
			p.now += late
		}
		f.end = f.shared.last + f.item.Seconds
	}
	p.started[i.Group] = queue[1:]
	p.expose(f.item.Axis, f.end)
	return true
}

// expose stands still until a time.
func (p *process) expose(a Axis, until unit.Seconds) {
	if until > p.now {
		p.account.Exposed[a] += until - p.now
		p.now = until
	}
}

// pair carries out all items of a pair at once: what both halves compute, beside what both communicate.
func (p *process) pair() {
	begin, axis := p.now, Axis(0)
	end := begin
	for _, i := range p.items {
		switch i.Kind {
		case Compute:
			p.compute(i)
		case Start, Blocking:
			now := p.now
			p.now = begin
			if e := p.occupy(i); e > end {
				end, axis = e, i.Axis
			}
			p.now = now
		case Wait:
		}
	}
	p.items = nil
	p.expose(axis, end)
}

// send hands a message to the port.
func (p *process) send(a schedule.Action) {
	m := p.work.Message[a.Peer]
	i := Item{Name: a.Op.String(), Seconds: m.Seconds, Level: m.Level, Axis: Axis(mesh.PP)}
	stream := message{p.stage, a.Peer, a.Op}
	p.arrivals[stream] = append(p.arrivals[stream], arrival{p.occupy(i), m.Seconds})
}

// receive waits for the oldest message of a peer, or says that it has not been sent yet.
func (p *process) receive(a schedule.Action) bool {
	sent := schedule.SendActivation
	if a.Op == schedule.RecvGradient {
		sent = schedule.SendGradient
	}
	stream := message{a.Peer, p.stage, sent}
	queue := p.arrivals[stream]
	if len(queue) == 0 {
		return false
	}
	m := queue[0]
	p.arrivals[stream] = queue[1:]
	if wait := m.at - p.now; wait > 0 {
		travels := min(wait, m.length)
		p.account.Bubble += wait - travels
		p.account.Exposed[Axis(mesh.PP)] += travels
		p.now = m.at
	}
	return true
}
