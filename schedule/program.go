package schedule

import "fmt"

// Op is what an action does. The package comment says what an executor owes to each.
type Op uint8

// The operations.
const (
	Forward        Op = iota // F: forward
	Backward                 // B: gradients of the input and of the weights
	Input                    // I: gradients of the input; those of the weights are deferred
	Weight                   // W: the deferred gradients of the weights
	Pair                     // F of one micro-batch and chunk together with B or I of another
	SendActivation           // y of a chunk to the rank of the next stage
	RecvActivation           // x of a chunk from the rank of the previous stage
	SendGradient             // dx of a chunk to the rank of the previous stage
	RecvGradient             // dy of a chunk from the rank of the next stage
)

func opNames() []string {
	return []string{"F", "B", "I", "W", "Pair", "SendActivation", "RecvActivation", "SendGradient", "RecvGradient"}
}

// String returns a short name: F, B, I, W, Pair, SendActivation ...
func (o Op) String() string {
	if names := opNames(); int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// Communicates tells whether o sends or receives.
func (o Op) Communicates() bool { return o >= SendActivation && o <= RecvGradient }

// Action is one entry of a rank's list.
type Action struct {
	Op    Op
	Micro int  // micro-batch, 0 .. m-1
	Chunk int  // chunk of the rank that the list belongs to
	Peer  int  // of a send or receive: the pipeline rank at the other end; 0 otherwise
	With  Half // of a Pair: what runs together with the forward; zero otherwise
}

// Half is the backward part of a Pair.
type Half struct {
	Op    Op // Backward or Input
	Micro int
	Chunk int
}

// String writes F3, or F3.1 for chunk 1.
func (h Half) String() string { return h.Op.String() + item(h.Micro, h.Chunk) }

// String writes an action as grids do: F3, chunk 1's as F3.1, a pair as F3.1|B0, a send as SendActivation 3.1 > 2.
func (a Action) String() string {
	switch a.Op {
	case Pair:
		return "F" + item(a.Micro, a.Chunk) + "|" + a.With.String()
	case SendActivation, SendGradient:
		return fmt.Sprintf("%s %s > %d", a.Op, item(a.Micro, a.Chunk), a.Peer)
	case RecvActivation, RecvGradient:
		return fmt.Sprintf("%s %s < %d", a.Op, item(a.Micro, a.Chunk), a.Peer)
	case Forward, Backward, Input, Weight:
	}
	return a.Op.String() + item(a.Micro, a.Chunk)
}

// item writes a micro-batch with its chunk, if not the first.
func item(micro, chunk int) string {
	if chunk == 0 {
		return fmt.Sprint(micro)
	}
	return fmt.Sprintf("%d.%d", micro, chunk)
}

// Program is a pipeline schedule: who holds what, which way each micro-batch goes, and what each rank does in which order.
type Program struct {
	Name   string     // of the schedule
	Stages [][]Stage  // [rank][chunk]: what the chunk holds
	Pipes  []int      // [micro-batch]: the pipe that it travels
	Ranks  [][]Action // [rank]: its actions in order
}

// Micros returns m, the number of micro-batches.
func (p *Program) Micros() int { return len(p.Pipes) }

// Actions returns the number of actions of all ranks.
func (p *Program) Actions() int {
	n := 0
	for _, list := range p.Ranks {
		n += len(list)
	}
	return n
}
