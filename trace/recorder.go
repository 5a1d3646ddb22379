package trace

import "fmt"

// Tick is a time in nanoseconds from a start that all recorders of a trace share.
type Tick int64

// Category says what a span's time went into.
type Category uint8

// The categories.
const (
	Compute Category = iota
	Comm
	Data
	Checkpoint
	Step
)

// String is the category in the file.
func (c Category) String() string {
	switch c {
	case Compute:
		return "compute"
	case Comm:
		return "comm"
	case Data:
		return "data"
	case Checkpoint:
		return "checkpoint"
	case Step:
		return "step"
	}
	return fmt.Sprintf("category(%d)", uint8(c))
}

// Lane is a line of a rank's timeline; see [Recorder.Lane].
type Lane uint16

// Arg is a number that goes with a span. The key "" is no argument.
type Arg struct {
	Key   string
	Value int64
}

// Args are the arguments of a span.
type Args [4]Arg

// Span is a stretch of time on a lane. The strings are kept: they should be constants or made once.
type Span struct {
	Name       string
	Category   Category
	Lane       Lane
	Start, End Tick // End is not before Start
	Args       Args
}

// GroupID is a process group of a recorder; see [Recorder.Group].
type GroupID uint16

// None is the peer of a collective that has none.
const None = -1

// Collective is what an operation moved.
type Collective struct {
	Name     string // as the PyTorch profiler calls it: "allreduce", "_allgather_base", …
	DType    string // likewise: "Float", "BFloat16", "Double", "Int"
	In, Out  int    // elements of this rank's input and output
	Group    GroupID
	Seq      int // number of the operation in its group; of a message, in its pair
	Src, Dst int // ranks in the world; the root is Src, or Dst when it receives; None for none

	// InSplit and OutSplit are the elements for and from each member of a variable all-to-all. They are copied.
	InSplit, OutSplit []int
}

// Options say how much a recorder holds; 0 stands for a default.
type Options struct {
	Events      int // spans, marks and counts together; 65,536
	Collectives int // spans of them that are collectives; a quarter of Events
	Splits      int // entries of all their splits; Collectives
}

// Recorder holds the events of one rank until a Writer takes them. It serves one goroutine at a time.
type Recorder struct {
	rank        int
	lanes       []string
	groups      []group
	events      []event
	collectives []moved
	splits      []int32
	dropped     int
}

type group struct {
	name  string
	ranks []int
}

// kind is what an event is.
type kind uint8

const (
	span kind = iota
	mark
	count
)

// event is a span; or a mark or a count, at Start, with the value in Args[0].
type event struct {
	Span
	kind       kind
	collective int32 // index into collectives, or None
}

// moved is a Collective whose splits lie in the recorder's pool: In first, then Out.
type moved struct {
	Collective
	split, ins, outs int32
}

// NewRecorder makes the recorder of one rank of the world.
func NewRecorder(rank int, o Options) *Recorder {
	if o.Events == 0 {
		o.Events = 1 << 16
	}
	if o.Collectives == 0 {
		o.Collectives = (o.Events + 3) / 4
	}
	if o.Splits == 0 {
		o.Splits = o.Collectives
	}
	return &Recorder{
		rank:        rank,
		events:      make([]event, 0, o.Events),
		collectives: make([]moved, 0, o.Collectives),
		splits:      make([]int32, 0, o.Splits),
	}
}

// Rank is the rank whose events these are.
func (r *Recorder) Rank() int { return r.rank }

// Lane returns the lane of the given name, made when it is new. Lanes are shown in the order of making.
func (r *Recorder) Lane(name string) Lane {
	for i, l := range r.lanes {
		if l == name {
			return Lane(i)
		}
	}
	r.lanes = append(r.lanes, name)
	return Lane(len(r.lanes) - 1)
}

// Group announces a process group for the collectives that name it.
func (r *Recorder) Group(name string, ranks []int) GroupID {
	r.groups = append(r.groups, group{name, append([]int(nil), ranks...)})
	return GroupID(len(r.groups) - 1)
}

// Span records a stretch of time.
func (r *Recorder) Span(s Span) { r.add(event{Span: s, kind: span, collective: None}) }

// Collective records the time of a communication operation.
func (r *Recorder) Collective(s Span, c Collective) {
	n := len(c.InSplit) + len(c.OutSplit)
	if len(r.events) == cap(r.events) || len(r.collectives) == cap(r.collectives) || cap(r.splits)-len(r.splits) < n {
		r.dropped++
		return
	}
	m := moved{Collective: c, split: int32(len(r.splits)), ins: int32(len(c.InSplit)), outs: int32(len(c.OutSplit))}
	m.InSplit, m.OutSplit = nil, nil
	for _, k := range c.InSplit {
		r.splits = append(r.splits, int32(k))
	}
	for _, k := range c.OutSplit {
		r.splits = append(r.splits, int32(k))
	}
	r.add(event{Span: s, kind: span, collective: int32(len(r.collectives))})
	r.collectives = append(r.collectives, m)
}

// Mark records a moment.
func (r *Recorder) Mark(name string, c Category, l Lane, at Tick) {
	r.add(event{Span: Span{Name: name, Category: c, Lane: l, Start: at}, kind: mark, collective: None})
}

// Count records the value of a counter from a moment on.
func (r *Recorder) Count(name string, at Tick, value int64) {
	r.add(event{Span: Span{Name: name, Start: at, Args: Args{{Value: value}}}, kind: count, collective: None})
}

// add appends an event, or counts it as dropped: what a full recorder has is kept.
func (r *Recorder) add(e event) {
	if len(r.events) == cap(r.events) {
		r.dropped++
		return
	}
	r.events = append(r.events, e)
}

// Len is the number of events held.
func (r *Recorder) Len() int { return len(r.events) }

// Free is the number of events for which there is room.
func (r *Recorder) Free() int { return cap(r.events) - len(r.events) }

// Dropped is the number of events that found no room since the recorder was made.
func (r *Recorder) Dropped() int { return r.dropped }

// Reset forgets all events. Lanes and groups stay.
func (r *Recorder) Reset() {
	r.events, r.collectives, r.splits = r.events[:0], r.collectives[:0], r.splits[:0]
}
