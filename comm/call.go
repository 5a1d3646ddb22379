package comm

import (
	"fmt"
	"strings"

	"carve/tensor"
)

// Call is one member's part in one operation: what a [Carrier] carries out.
//
// What an operation does with Src and Dst, for a group of n whose members contribute m elements each:
//
//	Barrier        -
//	Broadcast      Src [m] on the root, Dst [m] on the others
//	Reduce         Src [m]; Dst [m] on the root, which is Src
//	AllReduce      Src [m], Dst [m]; may be the same
//	Gather         Src [m]; Dst [n m] on the root
//	AllGather      Src [m], Dst [n m]
//	Scatter        Src [n m] on the root; Dst [m]
//	ReduceScatter  Src [n m], Dst [m]
//	AllToAll       Src [n m], Dst [n m]
//	AllToAllV      Src, Dst: the blocks of SendCounts and RecvCounts elements, one after the other
//	Send           Src [m]
//	Recv           Dst [m]
//
// The other one of Src and Dst is nil.
type Call struct {
	Op       Op
	Reduce   tensor.ReduceOp // of the operations that reduce
	Peer     int             // root, destination or source: a position in the group
	Dst, Src *tensor.Tensor

	// SendCounts and RecvCounts are the elements for and from each member. A carrier copies them.
	SendCounts, RecvCounts []int

	// Listener, if any, hears when the operation has finished, also if nobody waits for it.
	Listener Listener
	Cookie   uint64 // for the listener
}

// Listener hears of finished operations. Its methods are called by any goroutine, and not at all for
// operations that failed.
type Listener interface {
	Finished(cookie uint64)
}

// Signature is what members of a group must agree on.
type Signature struct {
	Op     Op
	Reduce tensor.ReduceOp
	DType  tensor.DType
	Peer   int32
	Count  int // m of the table at Call: elements
}

// Signature is what the other members' calls must equal (for Send and Recv: all but Op and Peer). The
// call must be valid.
func (c *Call) Signature(size int) Signature {
	s := Signature{Op: c.Op}
	t, parts := c.Src, 1
	switch c.Op {
	case Barrier:
		return s
	case AllToAllV:
		s.DType = c.Src.DType()
		return s
	case Broadcast, Scatter, ReduceScatter, Recv:
		if c.Dst != nil {
			t = c.Dst
		} else if c.Op == Scatter {
			parts = size
		}
	case AllToAll:
		parts = size
	case Reduce, AllReduce, Gather, AllGather, Send, numOps:
	}
	if c.Op.Reduces() {
		s.Reduce = c.Reduce
	}
	if c.Op.Rooted() || c.Op.PointToPoint() {
		s.Peer = int32(c.Peer)
	}
	s.DType, s.Count = t.DType(), t.Len()/parts
	return s
}

// Size is the number of bytes of the operation by the convention of nccl-tests: of the whole array for
// the gathering and scattering ones, of this member's outgoing blocks for AllToAllV.
func (c *Call) Size(size int) int {
	switch c.Op {
	case Barrier:
		return 0
	case AllToAllV:
		n := 0
		for _, k := range c.SendCounts {
			n += k
		}
		return n * c.Src.DType().Size()
	case Broadcast, Reduce, AllReduce, Send, Recv, numOps:
		size = 1
	case Gather, AllGather, Scatter, ReduceScatter, AllToAll:
	}
	s := c.Signature(size)
	return s.Count * s.DType.Size() * size
}

// String describes a signature for messages: "all-reduce sum of fp32[1024]".
func (s Signature) String() string {
	var b strings.Builder
	b.WriteString(s.Op.String())
	if s.Op.Reduces() {
		fmt.Fprintf(&b, " %v", s.Reduce)
	}
	switch s.Op {
	case Barrier:
		return b.String()
	case Broadcast, Scatter:
		fmt.Fprintf(&b, " from %d", s.Peer)
	case Reduce, Gather:
		fmt.Fprintf(&b, " to %d", s.Peer)
	case AllToAllV:
		fmt.Fprintf(&b, " of %v", s.DType)
		return b.String()
	case AllReduce, AllGather, ReduceScatter, AllToAll, Send, Recv, numOps:
	}
	fmt.Fprintf(&b, " of %v[%d]", s.DType, s.Count)
	return b.String()
}

// Validate checks the arguments of the member at position rank of a group of size members. Engines call
// it before anything else, so that they all refuse the same calls. Its errors wrap ErrInvalid.
func (c *Call) Validate(rank, size int) error {
	if err := c.check(rank, size); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

func (c *Call) check(rank, size int) error {
	if c.Op >= numOps {
		return fmt.Errorf("operation %d is not known", c.Op)
	}
	if c.Op.Reduces() && c.Reduce > tensor.Max {
		return fmt.Errorf("reduction %d is not known", c.Reduce)
	}
	if (c.Op.Rooted() || c.Op.PointToPoint()) && (c.Peer < 0 || c.Peer >= size) {
		return fmt.Errorf("peer %d of a group of %d", c.Peer, size)
	}
	if c.Op.PointToPoint() && c.Peer == rank {
		return fmt.Errorf("%v with itself", c.Op)
	}
	wantDst, wantSrc := c.operands(rank)
	if err := checkOperand("destination", c.Dst, wantDst); err != nil {
		return err
	}
	if err := checkOperand("source", c.Src, wantSrc); err != nil {
		return err
	}
	if !wantDst || !wantSrc {
		return c.checkSingle(size)
	}
	if c.Dst.DType() != c.Src.DType() {
		return fmt.Errorf("destination %v and source %v differ in dtype", c.Dst, c.Src)
	}
	if err := c.checkLengths(size); err != nil {
		return err
	}
	return c.checkAliases(rank)
}

// operands tells which of the two tensors the member at position rank must give.
func (c *Call) operands(rank int) (dst, src bool) {
	root := c.Peer == rank
	switch c.Op {
	case Barrier, numOps:
		return false, false
	case Broadcast:
		return !root, root
	case Reduce, Gather:
		return root, true
	case Scatter:
		return true, root
	case Send:
		return false, true
	case Recv:
		return true, false
	case AllReduce, AllGather, ReduceScatter, AllToAll, AllToAllV:
	}
	return true, true
}

func checkOperand(what string, t *tensor.Tensor, want bool) error {
	switch {
	case want && t == nil:
		return fmt.Errorf("no %s", what)
	case !want && t != nil:
		return fmt.Errorf("a %s where none belongs", what)
	}
	return nil
}

// checkSingle checks a call with one operand or none.
func (c *Call) checkSingle(size int) error {
	if c.Op == Scatter && c.Src != nil && c.Src.Len()%size != 0 {
		return fmt.Errorf("source %v does not divide into %d parts", c.Src, size)
	}
	return nil
}

// checkLengths compares destination and source, which are both there.
func (c *Call) checkLengths(size int) error {
	dst, src := c.Dst.Len(), c.Src.Len()
	switch c.Op {
	case Gather, AllGather:
		src *= size
	case Scatter, ReduceScatter:
		dst *= size
	case AllToAll:
		if src%size != 0 {
			return fmt.Errorf("source %v does not divide into %d parts", c.Src, size)
		}
	case AllToAllV:
		return c.checkCounts(size)
	case Barrier, Broadcast, Reduce, AllReduce, Send, Recv, numOps:
	}
	if dst != src {
		return fmt.Errorf("destination %v and source %v do not fit in a group of %d", c.Dst, c.Src, size)
	}
	return nil
}

// checkCounts checks the counts of a variable all-to-all against its tensors, which may be longer.
func (c *Call) checkCounts(size int) error {
	if len(c.SendCounts) != size || len(c.RecvCounts) != size {
		return fmt.Errorf("%d send and %d receive counts in a group of %d", len(c.SendCounts), len(c.RecvCounts), size)
	}
	if err := checkSum("send", c.SendCounts, c.Src); err != nil {
		return err
	}
	return checkSum("receive", c.RecvCounts, c.Dst)
}

func checkSum(what string, counts []int, t *tensor.Tensor) error {
	left := t.Len()
	for _, n := range counts {
		if n < 0 || n > left {
			return fmt.Errorf("%s counts %v in %v", what, clip(counts), t)
		}
		left -= n
	}
	return nil
}

// clip shortens a list for messages.
func clip(counts []int) []int { return counts[:min(len(counts), 16)] }

// checkAliases holds the rules of package comm on operands that share memory.
func (c *Call) checkAliases(rank int) error {
	whole, part := c.Dst, c.Src
	switch c.Op {
	case AllReduce, Reduce:
		if c.Dst == c.Src || startsAt(c.Dst, c.Src, 0) {
			return nil
		}
	case Gather, AllGather, Scatter, ReduceScatter:
		if whole.Len() < part.Len() {
			whole, part = part, whole
		}
		if startsAt(part, whole, rank*part.Len()) {
			return nil
		}
	case AllToAll, AllToAllV, Barrier, Broadcast, Send, Recv, numOps:
	}
	if overlap(c.Dst, c.Src) {
		return fmt.Errorf("destination %v overlaps source %v other than in place", c.Dst, c.Src)
	}
	return nil
}
