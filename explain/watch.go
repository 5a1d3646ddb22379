package explain

import (
	"fmt"
	"strconv"
	"strings"

	"carve/comm"
	"carve/parallel"
	"carve/record"
	"carve/schedule"
	"carve/tensor"
	"carve/unit"
)

// watch sums up what one rank does: its communication by kind, and its tensors by class.
type watch struct {
	record.Nothing
	flows   map[flowKey]*tally
	order   []flowKey // in the order of the first issue
	classes map[classKey]*class
	first   []*class // in the order of the first allocation
	living  map[int]life
	phases  []phase // by allocation, from number 1
	pending map[transferKey]flowKey
	names   map[string]string // class of every owner seen
	owners  map[string]int    // number of every class of owners

	action schedule.Action // the last one seen, and how many there were
	count  int
}

// phase is a phase of the step, or the building before it.
type phase uint8

const building phase = 255

func phaseOf(m record.Moment) phase {
	if m.Step == record.Building {
		return building
	}
	return phase(m.Phase)
}

func (p phase) String() string {
	if p == building {
		return "building"
	}
	return parallel.Phase(p).String()
}

// flowKey is what makes communication of one kind.
type flowKey struct {
	group  *comm.Group
	op     comm.Op
	dtype  tensor.DType
	phase  string
	module string
}

// transferKey is one operation.
type transferKey struct {
	group  *comm.Group
	number int
}

// tally is a sum over the calls of one kind.
type tally struct {
	calls, hiddenCalls        int
	bytes, hiddenBytes, least unit.Bytes
	most                      unit.Bytes
	wire                      float64
	peer                      int // of the last message
}

// classKey is what makes tensors of one class.
type classKey struct {
	category tensor.Category
	dtype    tensor.DType
	born     phase
	owner    int // number
	dims     [tensor.MaxDims]int
}

// class is the tensors of one kind.
type class struct {
	classKey
	owner            string
	lifetime         lifetime
	live, most       int // tensors at once
	bytes, mostBytes unit.Bytes
}

// life is a tensor in use.
type life struct {
	class *class
	born  stamp
}

// stamp is a moment as far as lifetimes go.
type stamp struct {
	phase  phase
	action int // number of the schedule's action
}

// lifetime is how long a tensor lives; of a class, the longest of its tensors.
type lifetime uint8

const (
	transient lifetime = iota // freed by the action that made it
	crossing                  // from one action of the schedule to a later one
	kept                      // from forward to backward
	lasting                   // for the whole run
)

func (l lifetime) String() string {
	switch l {
	case transient:
		return "transient"
	case crossing:
		return "between actions"
	case kept:
		return "forward to backward"
	case lasting:
		return "run"
	}
	return fmt.Sprintf("lifetime(%d)", uint8(l))
}

func newWatch() *watch {
	return &watch{
		flows: map[flowKey]*tally{}, classes: map[classKey]*class{}, living: map[int]life{},
		pending: map[transferKey]flowKey{}, names: map[string]string{}, owners: map[string]int{},
	}
}

// Issue implements [record.Sink].
func (w *watch) Issue(m record.Moment, t comm.Transfer) {
	if m.Step == record.Building {
		return
	}
	k := flowKey{group: t.Group, op: t.Op, dtype: t.DType, phase: phaseOf(m).String(), module: w.module(m)}
	w.pending[transferKey{t.Group, t.Number}] = k
	if w.flows[k] == nil {
		w.flows[k] = &tally{least: t.Bytes}
		w.order = append(w.order, k)
	}
}

// Wait implements [record.Sink].
func (w *watch) Wait(_ record.Moment, t comm.Transfer) {
	k, ok := w.pending[transferKey{t.Group, t.Number}]
	if !ok {
		return
	}
	delete(w.pending, transferKey{t.Group, t.Number})
	s := w.flows[k]
	s.calls++
	s.bytes += t.Bytes
	s.wire += t.Wire()
	s.least, s.most = min(s.least, t.Bytes), max(s.most, t.Bytes)
	s.peer = t.Peer
	if t.Hidden() > 0 {
		s.hiddenCalls++
		s.hiddenBytes += t.Bytes
	}
}

// Took implements [record.Sink].
func (w *watch) Took(m record.Moment, a tensor.Allocation) {
	now := w.stamp(m)
	w.phases = append(w.phases, now.phase)
	c := w.classAt(a, now.phase)
	c.live++
	c.bytes += a.Bytes
	c.most, c.mostBytes = max(c.most, c.live), max(c.mostBytes, c.bytes)
	w.living[a.Number] = life{c, now}
}

// classAt is the class of a new tensor.
func (w *watch) classAt(a tensor.Allocation, born phase) *class {
	owner := w.class(a.Owner)
	if born != building && (a.Category == tensor.Parameter || a.Category == tensor.Gradient) {
		owner = "units in use" // gathered or reduced, whatever the layers do meanwhile
	}
	number, ok := w.owners[owner]
	if !ok {
		number = len(w.owners)
		w.owners[owner] = number
	}
	k := classKey{a.Category, a.DType, born, number, a.Dims}
	c := w.classes[k]
	if c == nil {
		c = &class{classKey: k, owner: owner}
		w.classes[k] = c
		w.first = append(w.first, c)
	}
	return c
}

// stamp is the moment as far as lifetimes go.
func (w *watch) stamp(m record.Moment) stamp {
	if m.Action != w.action {
		w.action = m.Action
		w.count++
	}
	return stamp{phaseOf(m), w.count}
}

// Gave implements [record.Sink].
func (w *watch) Gave(m record.Moment, a tensor.Allocation) {
	l := w.living[a.Number]
	delete(w.living, a.Number)
	l.class.live--
	l.class.bytes -= a.Bytes
	l.class.lifetime = max(l.class.lifetime, l.until(w.stamp(m)))
}

// until is how long a tensor has lived that dies now.
func (l life) until(now stamp) lifetime {
	switch {
	case l.born.phase == building && now.phase != building:
		return lasting
	case l.born == now:
		return transient
	case l.born.makes() && now.ends() && l.born.action != now.action:
		return kept
	}
	return crossing
}

// makes and ends tell whether a forward, or a backward, may run: both in a pair.
func (s stamp) makes() bool {
	return s.phase == phase(parallel.Forward) || s.phase == phase(parallel.Both)
}

func (s stamp) ends() bool {
	return s.phase == phase(parallel.Backward) || s.phase == phase(parallel.WeightGradient) || s.phase == phase(parallel.Both)
}

// end closes the account: what lives now lives as long as the run.
func (w *watch) end() {
	for _, l := range w.living {
		l.class.lifetime = lasting
	}
}

// phaseOf is the phase of an allocation.
func (w *watch) phaseOf(number int) string {
	if number < 1 || number > len(w.phases) {
		return ""
	}
	return w.phases[number-1].String()
}

// module is what the rank's layers are doing; nothing outside of forward and backward.
func (w *watch) module(m record.Moment) string {
	switch m.Phase {
	case parallel.Forward, parallel.Backward, parallel.WeightGradient, parallel.Both:
		return w.class(m.Owner)
	case parallel.Receiving, parallel.Sending, parallel.Reducing, parallel.Norming, parallel.Updating:
	}
	return ""
}

// class is an owner with * for numbers: "model.layers.*.mlp".
func (w *watch) class(owner string) string {
	name, ok := w.names[owner]
	if !ok {
		name = classOf(owner)
		w.names[owner] = name
	}
	return name
}

// Short is a name without what the names of all have: the model in front, and that it is a weight.
func Short(name string) string {
	return strings.TrimSuffix(strings.TrimPrefix(name, "model."), ".weight")
}

// classOf replaces the parts of a name that are numbers.
func classOf(name string) string {
	parts := strings.Split(name, ".")
	for i, p := range parts {
		if _, err := strconv.Atoi(p); err == nil {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, ".")
}
