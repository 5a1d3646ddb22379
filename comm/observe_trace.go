package comm

import (
	"strings"

	"carve/tensor"
	"carve/trace"
)

// traceLines draws the operations of one group on lanes of a recorder: one for collectives, one for sends, one for receives.
type traceLines struct {
	recorder *trace.Recorder
	group    *Group
	id       trace.GroupID
	ranks    []int
	names    [numOps]string // of spans
	lanes    [3]traceLane
	messages [2][]int // sent to and received from each member
}

// traceLane is a lane and the end of its last span.
type traceLane struct {
	lane   trace.Lane
	end    trace.Tick
	number int // operations so far
}

func newTraceLines(r *trace.Recorder, g *Group) *traceLines {
	l := &traceLines{recorder: r, group: g, ranks: g.Ranks(), id: r.Group(g.Name(), g.ranks)}
	for i, prefix := range [...]string{"comm ", "send ", "recv "} {
		l.lanes[i].lane = r.Lane(prefix + g.Name())
	}
	for _, op := range Ops() {
		l.names[op] = strings.ReplaceAll(op.String(), "-", "_") + " " + g.Name()
	}
	l.messages = [2][]int{make([]int, g.Size()), make([]int, g.Size())}
	return l
}

// operation draws an operation from its issue, or from the end of the one before it on its lane, to its end.
func (l *traceLines) operation(m *movement, issued, end trace.Tick) {
	lane := l.lane(m.op)
	begin := min(max(issued, lane.end), end)
	lane.end = end
	lane.number++
	moved := trace.Collective{
		Name: profilerNames[m.op], DType: profilerDType(m.dtype), In: m.in, Out: m.out, Group: l.id, Seq: lane.number,
		Src: trace.None, Dst: trace.None, InSplit: m.send, OutSplit: m.recv,
	}
	me := l.ranks[l.group.rank]
	peer := l.ranks[m.peer]
	switch m.op {
	case Send:
		l.messages[0][m.peer]++
		moved.Src, moved.Dst, moved.Seq = me, peer, l.messages[0][m.peer]
	case Recv:
		l.messages[1][m.peer]++
		moved.Src, moved.Dst, moved.Seq = peer, me, l.messages[1][m.peer]
	case Broadcast, Scatter:
		moved.Src = peer
	case Reduce, Gather:
		moved.Dst = peer
	case Barrier, AllReduce, AllGather, ReduceScatter, AllToAll, AllToAllV, numOps:
	}
	l.recorder.Collective(trace.Span{Name: l.names[m.op], Category: trace.Comm, Lane: lane.lane, Start: begin, End: end}, moved)
}

func (l *traceLines) lane(op Op) *traceLane {
	switch op {
	case Send:
		return &l.lanes[1]
	case Recv:
		return &l.lanes[2]
	default:
		return &l.lanes[0]
	}
}

// elements are those that the member gives and gets.
func (c *Call) elements() (in, out int) {
	if c.Op == AllToAllV {
		for i := range c.SendCounts {
			in, out = in+c.SendCounts[i], out+c.RecvCounts[i]
		}
		return in, out
	}
	if c.Src != nil {
		in = c.Src.Len()
	}
	if c.Dst != nil {
		out = c.Dst.Len()
	}
	if c.Op == Broadcast || c.Op == Reduce || c.Op.PointToPoint() { // as the profiler counts them
		in, out = max(in, out), max(in, out)
	}
	return in, out
}

// profilerNames are the names of operations in traces of the PyTorch profiler.
var profilerNames = [numOps]string{
	Barrier: "barrier", Broadcast: "broadcast", Reduce: "reduce", AllReduce: "allreduce", Gather: "gather",
	AllGather: "_allgather_base", Scatter: "scatter", ReduceScatter: "_reduce_scatter_base",
	AllToAll: "all_to_all", AllToAllV: "all_to_allv", Send: "send", Recv: "recv",
}

// profilerDType is the name of a dtype there.
func profilerDType(d tensor.DType) string {
	switch d {
	case tensor.FP32:
		return "Float"
	case tensor.BF16:
		return "BFloat16"
	case tensor.FP64:
		return "Double"
	case tensor.Int32:
		return "Int"
	}
	return d.String()
}
