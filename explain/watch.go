package explain

import (
	"fmt"
	"strconv"
	"strings"

	"carve/comm"
	"carve/parallel"
	"carve/record"
	"carve/tensor"
	"carve/unit"
)

// watch sums up what one rank does: its communication by kind, and its tensors by class.
type watch struct {
	record.Nothing
	flows   map[flowKey]*tally
	order   []flowKey // in the order of the first issue
	classes map[classKey]*class
	first   []classKey // in the order of the first allocation
	living  map[int]life
	phases  []string // by allocation, from number 1
	pending map[transferKey]flowKey
	names   map[string]string // class of every owner seen
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
	owner    string
	dtype    tensor.DType
	dims     [tensor.MaxDims]int
	born     string // phase
}

// class is the tensors of one kind.
type class struct {
	lifetime         lifetime
	live, most       int // tensors at once
	bytes, mostBytes unit.Bytes
}

// life is a tensor in use.
type life struct {
	key  classKey
	born record.Moment
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
		pending: map[transferKey]flowKey{}, names: map[string]string{},
	}
}

// Issue implements [record.Sink].
func (w *watch) Issue(m record.Moment, t comm.Transfer) {
	if m.Step == record.Building {
		return
	}
	k := flowKey{group: t.Group, op: t.Op, dtype: t.DType, phase: phaseName(m), module: w.module(m)}
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
	phase := phaseName(m)
	w.phases = append(w.phases, phase)
	k := classKey{category: a.Category, owner: w.class(a.Owner), dtype: a.DType, dims: a.Dims, born: phase}
	if m.Step != record.Building && (a.Category == tensor.Parameter || a.Category == tensor.Gradient) {
		k.owner = "units in use" // gathered or reduced, whatever the layers do meanwhile
	}
	c := w.classes[k]
	if c == nil {
		c = &class{}
		w.classes[k] = c
		w.first = append(w.first, k)
	}
	c.live++
	c.bytes += a.Bytes
	c.most, c.mostBytes = max(c.most, c.live), max(c.mostBytes, c.bytes)
	w.living[a.Number] = life{k, m}
}

// Gave implements [record.Sink].
func (w *watch) Gave(m record.Moment, a tensor.Allocation) {
	l := w.living[a.Number]
	delete(w.living, a.Number)
	c := w.classes[l.key]
	c.live--
	c.bytes -= a.Bytes
	c.lifetime = max(c.lifetime, l.until(m))
}

// until is how long a tensor has lived that dies now.
func (l life) until(m record.Moment) lifetime {
	switch {
	case l.born.Step == record.Building && m.Step != record.Building:
		return lasting
	case l.born.Step == m.Step && l.born.Action == m.Action && l.born.Phase == m.Phase:
		return transient
	case l.born.Phase == parallel.Forward && (m.Phase == parallel.Backward || m.Phase == parallel.WeightGradient):
		return kept
	}
	return crossing
}

// end closes the account: what lives now lives as long as the run.
func (w *watch) end() {
	for _, l := range w.living {
		w.classes[l.key].lifetime = lasting
	}
}

// phaseOf is the phase of an allocation.
func (w *watch) phaseOf(number int) string {
	if number < 1 || number > len(w.phases) {
		return ""
	}
	return w.phases[number-1]
}

// phaseName is the name of a moment's phase.
func phaseName(m record.Moment) string {
	if m.Step == record.Building {
		return "building"
	}
	return m.Phase.String()
}

// module is what the rank's layers are doing; nothing outside of forward and backward.
func (w *watch) module(m record.Moment) string {
	switch m.Phase {
	case parallel.Forward, parallel.Backward, parallel.WeightGradient:
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
