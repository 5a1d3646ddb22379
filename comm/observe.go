package comm

import (
	"sync"

	"carve/tensor"
	"carve/trace"
	"carve/unit"
)

// ObserveOptions say how an [Observed] endpoint measures.
type ObserveOptions struct {
	// Clock reads the time since the run's start. It may be called by several goroutines at once.
	Clock func() trace.Tick
	// Trace, if any, receives a span for every operation. It is used by the goroutine that calls the operation.
	Trace *trace.Recorder
}

// Observed is an endpoint that counts what the operations of its groups cost.
type Observed struct {
	Endpoint
	options ObserveOptions
	exposed trace.Lane

	mu       sync.Mutex // guards carriers; taken before a carrier's mutex
	carriers []*observedCarrier
}

// Cost is what the operations of one kind in one group have cost a rank so far.
type Cost struct {
	Group string
	Size  int // members
	Op    Op
	Calls int
	Bytes unit.Bytes // sum of Call.Size
	// Waited is the time that the rank's goroutines stood still for the operations: exposed communication.
	Waited unit.Seconds
	// Total is the time from call to end. What of it was not waited for was hidden behind other work.
	Total unit.Seconds
}

// Observe wraps an endpoint.
func Observe(e Endpoint, o ObserveOptions) *Observed {
	observed := &Observed{Endpoint: e, options: o}
	if o.Trace != nil {
		observed.exposed = o.Trace.Lane("exposed comm")
	}
	return observed
}

// Group implements [Endpoint].
func (o *Observed) Group(name string, ranks []int) (*Group, error) {
	g, err := o.Endpoint.Group(name, ranks)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.carriers {
		if c.group.Name() == name {
			return c.handle, nil
		}
	}
	c := newObservedCarrier(o, g)
	o.carriers = append(o.carriers, c)
	c.handle = g.With(c)
	return c.handle, nil
}

// Costs lists what was called, by group in the order of their making and by operation. Started operations
// count when they have been waited for, or when they have ended and another operation of the group was called.
func (o *Observed) Costs() (costs []Cost) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.carriers {
		costs = c.appendCosts(costs)
	}
	return costs
}

// Waited is the exposed communication so far: the sum of Waited over all costs.
func (o *Observed) Waited() unit.Seconds {
	o.mu.Lock()
	defer o.mu.Unlock()
	var sum trace.Tick
	for _, c := range o.carriers {
		sum += c.waited()
	}
	return seconds(sum)
}

func seconds(t trace.Tick) unit.Seconds { return unit.Seconds(float64(t) / 1e9) }

// tally is a Cost in the making.
type tally struct {
	calls, bytes  int
	waited, total trace.Tick
}

// observedCarrier measures the calls of one group.
type observedCarrier struct {
	owner  *Observed
	group  *Group
	handle *Group      // what the endpoint returns
	lines  *traceLines // nil without a trace

	mu      sync.Mutex // guards what follows
	tallies [numOps]tally
	flights []startedOp // ring of started operations by ticket; tickets from first to next are in it
	first   uint64
	next    uint64
	direct  movement // scratch of Do
}

// startedOp is a started operation.
type startedOp struct {
	movement
	listener Listener // the caller's
	cookie   uint64
	work     Work
	issued   trace.Tick
	ended    trace.Tick
	over     bool
}

// movement is what is kept of a call: its tensors may be gone when it is counted.
type movement struct {
	op         Op
	peer       int
	bytes      int
	in, out    int // elements
	dtype      tensor.DType
	send, recv []int // own copies
}

// read fills the movement from a call of a group of size members.
func (m *movement) read(c *Call, size int) {
	m.op, m.peer, m.bytes = c.Op, c.Peer, c.Size(size)
	m.in, m.out = c.elements()
	if c.Src != nil {
		m.dtype = c.Src.DType()
	} else if c.Dst != nil {
		m.dtype = c.Dst.DType()
	}
	m.send, m.recv = append(m.send[:0], c.SendCounts...), append(m.recv[:0], c.RecvCounts...)
}

func newObservedCarrier(o *Observed, g *Group) *observedCarrier {
	c := &observedCarrier{owner: o, group: g, flights: make([]startedOp, 8)}
	if o.options.Trace != nil {
		c.lines = newTraceLines(o.options.Trace, g)
	}
	return c
}

// Do implements [Carrier].
func (c *observedCarrier) Do(call Call) error {
	begin := c.owner.options.Clock()
	if err := c.group.carrier.Do(call); err != nil {
		return err
	}
	end := c.owner.options.Clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	c.direct.read(&call, c.group.Size())
	c.count(&c.direct, begin, end)
	c.wait(call.Op, begin, end)
	return nil
}

// Start implements [Carrier].
func (c *observedCarrier) Start(call Call) Work {
	if call.Validate(c.group.rank, c.group.Size()) != nil {
		return c.group.carrier.Start(call) // which refuses it
	}
	c.mu.Lock()
	c.settle()
	ticket := c.board(&call)
	c.mu.Unlock()
	call.Listener, call.Cookie = c, ticket
	work := c.group.carrier.Start(call)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ticket >= c.first {
		c.flight(ticket).work = work
	}
	return NewWork(c, ticket)
}

// board gives a started operation a ticket. The caller holds mu.
func (c *observedCarrier) board(call *Call) (ticket uint64) {
	n := uint64(len(c.flights))
	if c.next-c.first == n {
		grown := make([]startedOp, 2*n)
		for i := c.first; i < c.next; i++ {
			grown[i%(2*n)] = c.flights[i%n]
		}
		c.flights = grown
	}
	ticket = c.next
	c.next++
	f := c.flight(ticket)
	*f = startedOp{movement: f.movement, listener: call.Listener, cookie: call.Cookie, issued: c.owner.options.Clock()}
	f.read(call, c.group.Size())
	return ticket
}

func (c *observedCarrier) flight(ticket uint64) *startedOp {
	return &c.flights[ticket%uint64(len(c.flights))]
}

// Finished implements [Listener]: an operation in flight has ended.
func (c *observedCarrier) Finished(ticket uint64) {
	now := c.owner.options.Clock()
	c.mu.Lock()
	f := c.flight(ticket)
	f.ended, f.over = now, true
	listener, cookie := f.listener, f.cookie
	c.mu.Unlock()
	if listener != nil {
		listener.Finished(cookie)
	}
}

// Await implements [Awaiter].
func (c *observedCarrier) Await(ticket uint64) error {
	begin := c.owner.options.Clock()
	c.mu.Lock()
	if ticket < c.first { // over and counted
		c.mu.Unlock()
		return nil
	}
	work := c.flight(ticket).work
	c.mu.Unlock()
	if err := work.Wait(); err != nil {
		return err
	}
	end := c.owner.options.Clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if ticket >= c.first {
		c.wait(c.flight(ticket).op, begin, end)
	}
	c.settle()
	return nil
}

// Done implements [Awaiter].
func (c *observedCarrier) Done(ticket uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ticket < c.first || c.flight(ticket).over
}

// settle counts the oldest operations that are over. The caller holds mu and the rank's token.
func (c *observedCarrier) settle() {
	for c.first < c.next && c.flight(c.first).over {
		f := c.flight(c.first)
		c.count(&f.movement, f.issued, f.ended)
		c.first++
	}
}

// count enters an operation that took from begin to end. The caller holds mu and the rank's token.
func (c *observedCarrier) count(m *movement, begin, end trace.Tick) {
	t := &c.tallies[m.op]
	t.calls++
	t.bytes += m.bytes
	t.total += end - begin
	if c.lines != nil {
		c.lines.operation(m, begin, end)
	}
}

// wait enters time that a goroutine of the rank waited for an operation. The caller holds mu and the rank's token.
func (c *observedCarrier) wait(op Op, begin, end trace.Tick) {
	c.tallies[op].waited += end - begin
	if c.lines != nil && end > begin {
		c.lines.recorder.Span(trace.Span{
			Name: c.lines.names[op], Category: trace.Comm, Lane: c.owner.exposed, Start: begin, End: end,
		})
	}
}

func (c *observedCarrier) appendCosts(costs []Cost) []Cost {
	c.mu.Lock()
	defer c.mu.Unlock()
	for op, t := range c.tallies {
		if t.calls == 0 && t.waited == 0 {
			continue
		}
		costs = append(costs, Cost{
			Group: c.group.Name(), Size: c.group.Size(), Op: Op(op),
			Calls: t.calls, Bytes: unit.Bytes(t.bytes), Waited: seconds(t.waited), Total: seconds(t.total),
		})
	}
	return costs
}

func (c *observedCarrier) waited() (sum trace.Tick) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.tallies {
		sum += t.waited
	}
	return sum
}
