// Package comm carries tensors between the ranks of a world: collectives and messages over process groups, on
// interchangeable engines.
//
// # Worlds, endpoints, groups
//
// A world is n ranks. Each has an [Endpoint]; an endpoint makes [Group] handles, one per mesh axis or whatever subset of
// ranks needs to talk. [Run] runs a function as every rank. The default engine is [Local], whose ranks are goroutines
// that read and write each other's tensors directly. Roots, peers and blocks are numbered by position in the group.
//
//	world := comm.NewLocal(4, comm.LocalOptions{})
//	err := comm.Run(ctx, world.Endpoints(), func(e comm.Endpoint) error {
//		g, err := e.Group("dp", []int{0, 1, 2, 3})
//		if err != nil {
//			return err
//		}
//		return g.AllReduce(gradient, tensor.Sum)
//	})
//
// # Operations
//
// For n members that contribute S/n or S bytes each; S is the size in tables and busbw the factor that turns S/time
// into the rate of the busiest link (both as nccl-tests has them):
//
//	operation       result                                         S is           busbw
//	Broadcast       t = the root's t                               all of t       1
//	Reduce          the root's t = t0 ∘ t1 ∘ …                     all of t       1
//	AllReduce       t = t0 ∘ t1 ∘ …                                all of t       2(n-1)/n
//	Gather          the root's dst = src0 | src1 | …               all of dst     (n-1)/n
//	AllGather       dst = src0 | src1 | …                          all of dst     (n-1)/n
//	Scatter         dst = block i of the root's src                all of src     (n-1)/n
//	ReduceScatter   dst = block i of src0 ∘ src1 ∘ …               all of src     (n-1)/n
//	AllToAll        block j of dst = block i of member j's src     all of src     (n-1)/n
//	AllToAllV       the same with blocks of any sizes              what is sent   (n-1)/n
//	Send, Recv      dst = src                                      all of src     1
//	Barrier         -                                              0              -
//
// ∘ is sum, average, minimum or maximum, applied in the order of the positions: results do not depend on timing, bit for bit. bf16
// is combined in fp32 and rounded once; an average divides the sum once, and truncates in int32. Sizes need not
// divide by n where the table has no blocks; every tensor may be empty.
//
// Two operands may share memory only as the operation's documentation says (in place); anything else is refused. A
// tensor belongs to an operation from the call until the end of the call or of [Work.Wait]: nobody may write what an
// operation uses, or read what it writes. Memory is one rank's: two ranks do not pass the same elements.
//
// # Order
//
// Collectives of one group take place in the order in which each rank issued them, like kernels on a stream, so that one may
// be started on the result of another that has not finished. Messages from one rank to another in one group are
// matched in order. Collectives, messages, pairs of ranks and groups do not wait for each other otherwise: of
// two ranks that each start to send and then receive, none is stuck; of two that send before they receive, both are.
//
// Every collective meets all members: none returns before all have called it. A Send returns when the message
// was received.
//
// # The compute token
//
// A rank owns one [Token]. The goroutine that runs the rank holds it from the start, and every goroutine of the rank that
// computes or calls this package must hold it. Waiting gives it up: in Wait, and in a blocking operation that has looked
// for the others for some microseconds. A started operation proceeds in a goroutine of its own, which takes the token
// only while it moves or reduces elements: a rank that computes for long calls [Token.Yield] now and then, for instance between
// layers. So n ranks with one thread each never run more than n threads, and what overlaps is waiting.
//
// # Failure
//
// A world fails once, and as a whole. Causes: a rank's function returned an error or panicked; the context ended; the members
// of a group called different operations (or lengths, dtypes, reductions, roots, counts); a call was invalid; a rank left
// while others needed it. From then on every operation of every rank that is blocked or is called later returns an
// error at once. It wraps the [*Failure], which names the rank to blame and the cause. Tensors may then hold
// anything, but nobody writes to a tensor of a rank whose operation has returned, or whose [Endpoint.Close] has.
// Operations that were started and not waited for end with Close: memory must outlive it. A mismatch blames the first
// rank that differs from the majority and quotes both sides.
//
// Nobody polls a clock or waits for a time to pass: the local engine keeps the failure in one pointer that is set once, and who
// sets it then broadcasts on every condition that a rank can sleep on (meetings of groups, queues of collectives, pairs that
// exchange messages); who is awake looks at the pointer each time it looks for the others. So the time from a failure to
// the last rank's return is that of waking goroutines, and under fake time it is nothing (TestFailureAtOnce).
//
// A rank that never comes is not an error of an engine: it hangs the others until the context ends, or until a [Watchdog] finds it.
//
// # Engines and decorators
//
// [Carrier] is the narrow waist: one member's [Call] in one group. An engine implements Carrier and [Endpoint]; a decorator wraps the
// carriers of the groups that an endpoint makes. Package comm/commtest is what every engine must pass. From the inside out: [Emulated] makes
// operations take the time of a cluster's links, [Route] carries them out as messages; [Watchdog] records what ranks did and ends a world that hangs; [Observed] counts bytes and time.
//
// [Meta] is the engine without a world: one rank's endpoint, whose operations are over at once and are recorded. It is how a
// plan for thousands of ranks is priced.
//
// # Locks
//
// Local.mu is taken before the mutex of a queue or pair, never after; no two of those are held together. A [Listener] is
// called without locks.
package comm
