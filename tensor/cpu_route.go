package tensor

import (
	"math"

	"carve/tensor/internal/kernel"
)

// Route implements [ExpertDevice].
func (c *CPU) Route(op Route) {
	op.check("route", op.Scores, op.Choice, op.Gate)
	if wide(op.Scores) {
		c.f64.route.run(&c.f64, op)
		return
	}
	c.f32.route.run(&c.f32, op)
}

// check holds the shapes that forward and backward share.
func (g *Gating) check(name string, scores, choice, gate *Tensor) {
	n, e := scores.Rows(), scores.Cols()
	need(g.PerToken >= 1 && g.PerToken <= e, name, "from one to all experts per row")
	need(g.Groups <= 1 || e%g.Groups == 0, name, "groups of equal size")
	wantLen(name, "choice", choice, n*g.PerToken)
	wantLen(name, "gate", gate, n*g.PerToken)
}

// routing is the task of Route.
type routing[T kernel.Float] struct {
	spans
	Gating
	v       kernel.Vector[T]
	experts int
	scores  []T
	bias    []T
	choice  []int32
	gate    []T
	s       scratch[T] // per worker: the scores that count for the choice; those of groups
}

func (t *routing[T]) run(o *ops[T], op Route) {
	t.v, t.Gating, t.experts = o.v, op.Gating, op.Scores.Cols()
	t.scores, t.choice, t.gate = elementsOf[T](op.Scores), op.Choice.I32(), elementsOf[T](op.Gate)
	t.bias = nil
	if op.Bias != nil {
		t.bias = elementsOf[T](op.Bias)
	}
	t.spans = rowSpans(op.Scores.Rows(), t.experts*(t.PerToken+1))
	t.s = o.scratch(o.c.Threads(), 2, t.experts)
	o.c.ctx.Run(t.items(), t)
	t.s.free()
}

// Do routes the rows of one item.
func (t *routing[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		s := t.scores[r*t.experts : (r+1)*t.experts]
		t.score(s)
		pick := t.s.run(worker, 0)[:t.experts]
		copy(pick, s)
		if t.bias != nil {
			t.v.Add(pick, t.bias)
		}
		if t.Groups > 1 {
			t.limit(pick, t.s.run(worker, 1)[:t.Groups])
		}
		choice, gate := t.choice[r*t.PerToken:(r+1)*t.PerToken], t.gate[r*t.PerToken:(r+1)*t.PerToken]
		for j := range choice {
			choice[j] = int32(take(pick))
		}
		t.weigh(gate, s, choice)
	}
}

// score turns a row of logits into scores.
func (t *routing[T]) score(s []T) {
	switch t.Score {
	case Softmax:
		t.v.Scale(s, 1/t.v.Exp(s, t.v.Largest(s)), s)
	case Sigmoid:
		for i, x := range s {
			s[i] = T(1 / (1 + math.Exp(-float64(x))))
		}
	}
}

// limit takes the experts of the worst groups out of the choice; of equal ones the last.
func (t *routing[T]) limit(pick, worth []T) {
	size := len(pick) / t.Groups
	for g := range worth {
		worth[g] = t.worth(pick[g*size : (g+1)*size])
	}
	for range t.Groups - t.GroupsPerToken {
		g := leave(worth)
		t.v.Fill(pick[g*size:(g+1)*size], T(math.Inf(-1)))
	}
}

// worth is the sum of the best one or two of a group's scores.
func (t *routing[T]) worth(group []T) T {
	first, second := group[0], T(math.Inf(-1))
	for _, x := range group[1:] {
		if x > first {
			first, x = x, first
		}
		second = max(second, x)
	}
	if t.GroupTop < 2 || len(group) < 2 {
		return first
	}
	return first + second
}

// take returns the index of the largest number, of equal ones the first, and leaves -Inf in its place. Numbers that
// are -Inf are taken already.
func take[T kernel.Float](x []T) int {
	gone := T(math.Inf(-1))
	top := -1
	for i, v := range x {
		if v != gone && (top < 0 || v > x[top]) {
			top = i
		}
	}
	if top < 0 {
		return 0 // nothing is left: the row's scores are not numbers
	}
	x[top] = gone
	return top
}

// leave returns the index of the smallest number, of equal ones the last, and leaves +Inf in its place.
func leave[T kernel.Float](x []T) int {
	gone := T(math.Inf(1))
	low := 0
	for i, v := range x {
		if v != gone && (x[low] == gone || v <= x[low]) {
			low = i
		}
	}
	x[low] = gone
	return low
}

// tiny keeps the sum of gates from being zero.
const tiny = 1e-20

// weigh sets the gates of a row.
func (t *routing[T]) weigh(gate, s []T, choice []int32) {
	sum := T(tiny)
	for j, e := range choice {
		gate[j] = s[e]
		sum += s[e]
	}
	scale := T(t.Scale)
	if t.Normalise {
		scale /= sum
	}
	for j := range gate {
		gate[j] *= scale
	}
}

// RouteBackward implements [ExpertDevice].
func (c *CPU) RouteBackward(op RouteBackward) {
	const name = "route backward"
	op.check(name, op.Scores, op.Choice, op.Gate)
	if op.At == nil {
		wantLen(name, "pull", op.Pull, op.Choice.Len())
	} else {
		wantLen(name, "at", op.At, op.Choice.Len())
	}
	need(op.Push == nil || op.Length > 0, name, "sequences have a length")
	if wide(op.Scores) {
		c.f64.routeBack.run(&c.f64, op)
		return
	}
	c.f32.routeBack.run(&c.f32, op)
}

// routingBackward is the task of RouteBackward.
type routingBackward[T kernel.Float] struct {
	spans
	Gating
	v             kernel.Vector[T]
	experts       int
	scores        []T
	choice, at    []int32
	gate, pull    []T
	push          []T
	first, length int
	s             scratch[T] // per worker: the gradient of the chosen; no push
}

func (t *routingBackward[T]) run(o *ops[T], op RouteBackward) {
	t.v, t.Gating, t.experts = o.v, op.Gating, op.Scores.Cols()
	t.scores, t.gate, t.pull = elementsOf[T](op.Scores), elementsOf[T](op.Gate), elementsOf[T](op.Pull)
	t.choice, t.at = op.Choice.I32(), nil
	if op.At != nil {
		t.at = op.At.I32()
	}
	t.push, t.first, t.length = nil, op.First, op.Length
	if op.Push != nil {
		t.push = elementsOf[T](op.Push)
	}
	t.spans = rowSpans(op.Scores.Rows(), t.experts)
	t.s = o.scratch(o.c.Threads(), 1, t.experts)
	o.c.ctx.Run(t.items(), t)
	t.s.free()
}

// Do computes the rows of one item.
func (t *routingBackward[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	grad := t.s.run(worker, 0)[:t.experts]
	for r := lo; r < hi; r++ {
		t.v.Fill(grad, 0)
		sum := t.chosen(grad, r)
		t.row(t.scores[r*t.experts:(r+1)*t.experts], grad, sum, t.pushOf(r))
	}
}

// chosen sets the entries of a row's chosen experts to s·d/ds of what the gates pull at, and returns their sum.
func (t *routingBackward[T]) chosen(grad []T, r int) (sum T) {
	choice := t.choice[r*t.PerToken : (r+1)*t.PerToken]
	for j, e := range choice {
		at := r*t.PerToken + j
		if t.at != nil {
			at = int(t.at[at])
		}
		if at >= 0 {
			grad[e] += t.pull[at]
			sum += t.pull[at]
		}
	}
	if !t.Normalise {
		return sum
	}
	left := T(0)
	for j, e := range choice {
		grad[e] -= t.gate[r*t.PerToken+j] / T(t.Scale) * sum
		left += grad[e]
	}
	return left
}

// pushOf is the auxiliary gradient of a row, nil for none.
func (t *routingBackward[T]) pushOf(r int) []T {
	if t.push == nil {
		return nil
	}
	at := (t.first + r) / t.length * t.experts
	return t.push[at : at+t.experts]
}

// row turns a row of scores into the gradient of its logits, given s·ds in grad, the sum of that, and the gradient by
// the (normalised) scores in push.
func (t *routingBackward[T]) row(s, grad []T, sum T, push []T) {
	total, pushed := T(1), T(0)
	if t.Score == Sigmoid {
		total = T(t.v.Sum(s))
	}
	if push != nil {
		pushed = t.v.Dot(s, push) / total
	}
	for e, x := range s {
		d := grad[e]
		if push != nil {
			d += x * (push[e] - pushed) / total
		}
		switch t.Score {
		case Softmax:
			s[e] = d - x*sum
		case Sigmoid:
			s[e] = d * (1 - x)
		}
	}
}
