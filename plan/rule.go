package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carve/internal/document"
)

// Rule names what a violation or a note is about. Names are stable: scripts may test for them.
type Rule string

// The rules.
const (
	RuleModel      Rule = "model"             // the model's description fits itself
	RuleRange      Rule = "range"             // a number lies where it has a meaning
	RuleBatch      Rule = "global-batch"      // whole micro-batches on every data-parallel rank
	RuleLength     Rule = "length"            // tokens or steps, not both
	RuleSequence   Rule = "sequence"          // the sequence can be split, and the model has the positions
	RuleHeads      Rule = "heads"             // whole heads on every tensor-parallel rank
	RuleKVHeads    Rule = "kv-heads"          // whole key-value heads, or whole copies of them
	RuleWidth      Rule = "width"             // even parts of the feed-forward, some of the vocabulary
	RuleExperts    Rule = "experts"           // whole experts on every expert-parallel rank
	RuleStages     Rule = "stages"            // every layer on one chunk
	RuleSchedule   Rule = "schedule"          // degree, chunks and micro-batches that the schedule can take
	RuleTensor     Rule = "tensor"            // what the gathered baseline runs
	RuleContext    Rule = "context"           // heads or positions that context parallelism can split
	RuleZero       Rule = "zero"              // state that can be sharded so
	RuleOptimizer  Rule = "optimizer"         // an update that is defined
	RuleOrder      Rule = "order"             // every axis once
	RuleWorld      Rule = "world"             // enough devices, and not too many ranks
	RuleData       Rule = "data"              // sources that can be mixed
	RuleTokenizer  Rule = "tokenizer"         // tokens that the model knows
	RuleRecompute  Rule = "recompute"         // a period within the layers
	RuleSlowLink   Rule = "slow-link"         // note: a chatty axis leaves the fast domain
	RuleUneven     Rule = "uneven-stages"     // note: chunks differ
	RuleIdle       Rule = "idle-devices"      // note: some devices have no rank
	RuleReplicated Rule = "kv-heads-repeated" // note: key-value heads are held more than once
)

// Violation is one rule that a plan breaks, with the numbers and what would be legal.
type Violation struct {
	Rule    Rule
	Message string
	Keys    []string // of the file whose values break it, "layout.tp"; the likeliest to change first
	Line    int      // of the first of them that the file has; 0 for a plan that was not read
	Column  int
}

// Error writes "plan: line 3, column 10: tensor degree 8 does not divide 12 heads; use 1, 2, 3, 4, 6 or 12".
func (v *Violation) Error() string {
	if v.Line == 0 {
		return "plan: " + v.Message
	}
	return fmt.Sprintf("plan: line %d, column %d: %s", v.Line, v.Column, v.Message)
}

// locate finds the key of the file that a violation comes from.
func (v *Violation) locate(n *document.Node) {
	for _, key := range v.Keys {
		if line, column, ok := n.Place(key); ok {
			v.Line, v.Column = line, column
			return
		}
	}
}

// Violations is every rule that a plan breaks, in a fixed order.
type Violations []*Violation

// Error writes a violation a line.
func (v Violations) Error() string {
	lines := make([]string, len(v))
	for i, one := range v {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As each violation.
func (v Violations) Unwrap() []error {
	all := make([]error, len(v))
	for i, one := range v {
		all[i] = one
	}
	return all
}

// checker collects violations or notes.
type checker struct{ found Violations }

// add records one. keys are those that the values come from, with spaces between.
func (c *checker) add(rule Rule, keys, format string, args ...any) {
	c.found = append(c.found, &Violation{Rule: rule, Message: fmt.Sprintf(format, args...), Keys: strings.Fields(keys)})
}

// within checks that the number of a key lies in a range; NaN does not.
func (c *checker) within(key string, value, low, high float64) {
	if !(value >= low && value <= high) {
		text := document.FormatFloat
		c.add(RuleRange, key, "%s is %s; use %s to %s", key, text(value), text(low), text(high))
	}
}

// divisors returns the divisors of n that a condition holds for, as a sentence has them: "1, 2 or 4". Of
// many it names the smallest and the largest ones.
func divisors(n int, legal func(int) bool) string {
	const most = 16
	var names []string
	for d := 1; d <= n; d++ {
		if n%d == 0 && legal(d) {
			names = append(names, strconv.Itoa(d))
		}
	}
	if len(names) > most {
		names = slices.Concat(names[:most/2], []string{"..."}, names[len(names)-most/2:])
	}
	return document.Either(names)
}

// any holds for every number.
func anyNumber(int) bool { return true }

// multiples returns the multiples of step next to n: "252 or 288", or just the first above zero.
func multiples(n, step int) string {
	below := n / step * step
	if below == 0 {
		return strconv.Itoa(step)
	}
	return fmt.Sprintf("%d or %d", below, below+step)
}
