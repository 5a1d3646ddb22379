package tensor

import "fmt"

// ExpertDevice has what a mixture of E experts needs beside matrix products and the moving of rows, which are
// [PointwiseDevice.Embed] (row i of y is row ids[i] of a table) and its backward (row i of dy is added to row ids[i]).
//
// N rows choose k experts each. A choice is a pair of row and place among the k.
type ExpertDevice interface {
	// Route turns a router's logits into scores, chosen experts and gates; see [Route].
	Route(op Route)
	// RouteBackward turns scores into the gradient of the logits; see [RouteBackward].
	RouteBackward(op RouteBackward)
	// Admit leaves out choices beyond what experts have room for; see [Admit].
	Admit(op Admit)
	// Deal sorts choices by expert; see [Deal].
	Deal(op Deal)
	// Tally counts choices and adds up scores by sequence and expert; see [Tally].
	Tally(op Tally)
	// ScaleRows sets row i of y [N C] to g[i] times row i of x. y may be x. g is fp32 or fp64.
	ScaleRows(y, x, g *Tensor)
	// DotRows sets dst[i] to the inner product of the rows i of a and b [N C]. dst is fp32 or fp64.
	DotRows(dst, a, b *Tensor)
}

// Score is how logits become scores.
type Score uint8

// The scores.
const (
	Softmax Score = iota
	Sigmoid
)

// String names the score for messages.
func (s Score) String() string {
	switch s {
	case Softmax:
		return "softmax"
	case Sigmoid:
		return "sigmoid"
	}
	return fmt.Sprintf("score(%d)", uint8(s))
}

// Gating is how a router chooses experts and weighs them. Equal scores go to the lower index.
type Gating struct {
	Score    Score
	PerToken int // k
	// Groups > 1 lets a row choose only from its best GroupsPerToken groups of E/Groups neighbours; a group is worth
	// the sum of its best GroupTop scores (node-limited routing, DeepSeek-V2 with 1 and -V3 with 2).
	Groups, GroupsPerToken, GroupTop int
	// Normalise makes the gates of a row sum to 1, before Scale multiplies them.
	Normalise bool
	Scale     float64
}

// Route is the forward of a router:
//
//	s = softmax(logits) or σ(logits);  chosen = the k largest of s + Bias, within the row's groups
//	gate = Scale·s[chosen], or Scale·s[chosen]/Σ s[chosen]
type Route struct {
	Gating
	Scores *Tensor // [N E], fp32 or fp64; in: the logits; out: the scores
	Bias   *Tensor // [E], like Scores: added for the choice, not for the gate; nil for none
	Choice *Tensor // out: int32 [N k], best first
	Gate   *Tensor // out: [N k], like Scores
}

// RouteBackward is the backward of a Route.
type RouteBackward struct {
	Gating
	Scores *Tensor // [N E], in: of the forward; out: the gradient of the logits
	Choice *Tensor // [N k] of the forward
	Gate   *Tensor // [N k] of the forward
	// At [N k], int32, says where in Pull the gradient of a gate is, negative for none; nil means in order. Pull holds gradients
	// of gates, each times its gate, like Scores.
	At, Pull *Tensor
	// Push [sequences E] is the gradient by the scores (of sigmoid: by the scores divided by their sum) of an auxiliary loss,
	// equal for all rows of a sequence; nil for none. Row i belongs to sequence (First+i)/Length.
	Push          *Tensor
	First, Length int
}

// Admit gives every expert Room choices of each sequence, first come, first served; of a row the better choice comes
// first. Row i belongs to run (First+i)/Length of equally long runs of a sequence.
type Admit struct {
	Choice        *Tensor // int32 [N k]
	At            *Tensor // out: [N k], int32, 0 or, for choices that are left out, -1
	Before        *Tensor // [runs E], fp32 or fp64: choices of each expert by earlier rows of the run's sequence; changed
	Room          int
	First, Length int
}

// Deal is a stable sort of choices by expert, into slots: those of expert 0 first, in the order of the rows.
type Deal struct {
	Choice *Tensor // int32 [N k]
	Gate   *Tensor // [N k]
	// At [N k], int32; in: negative for choices that are left out; out: the slot of the others.
	At     *Tensor
	From   *Tensor // out: the row of each slot, int32, at least as many elements as slots
	Sorted *Tensor // out: the gate of each slot, at least as many elements as slots
	Counts *Tensor // out: slots of each expert, int32 [E]
	Chosen *Tensor // out: choices of each expert, also those that are left out, int32 [E]
}

// Tally adds up, for every sequence and expert, how often the sequence's rows chose it, and their scores. Row i belongs
// to sequence (First+i)/Length.
type Tally struct {
	Choice        *Tensor // int32 [N k]
	Scores        *Tensor // [N E], fp32 or fp64
	Score         Score   // scores of Sigmoid are divided by their row's sum first
	Chosen        *Tensor // out: [sequences E], like Scores
	Mass          *Tensor // out: [sequences E], like Scores; nil for none
	First, Length int
}
