package schedule

import (
	"fmt"
	"strings"
)

// Rule names what a fault breaks. Names are stable: scripts may test for them.
type Rule string

// The rules.
const (
	RulePlacement Rule = "placement" // every stage of every pipe lives in one place, every micro-batch travels one pipe
	RuleForeign   Rule = "foreign"   // an action is of a known operation, micro-batch and chunk, and has a use
	RuleMissing   Rule = "missing"   // nothing is left out
	RuleDoubled   Rule = "doubled"   // nothing is done twice
	RuleOrder     Rule = "order"     // what an action needs happens before it
	RulePeer      Rule = "peer"      // a message goes to, and comes from, the rank of the neighbouring stage
	RuleMatch     Rule = "match"     // messages are received in the order in which they are sent
	RuleDeadlock  Rule = "deadlock"  // no ranks wait for each other
)

// Fault is one violation: where, of which rule, and what to do.
type Fault struct {
	Rule    Rule
	Rank    int
	Index   int    // of the action in the rank's list; the list's length for something missing
	Action  Action // the one at Index, or the one that is missing
	Message string // what is wrong; what to do
}

// Error names the place, the rule, what is wrong and what to do.
func (f *Fault) Error() string {
	if f.Rule == RulePlacement {
		return "schedule: " + f.Message
	}
	return fmt.Sprintf("schedule: rank %d, action %d, %s: %s", f.Rank, f.Index, f.Action, f.Message)
}

// Faults are the violations of a program: of each rank the first, since what follows a rank's first fault is its consequence.
type Faults []*Fault

// Error has a line for every fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As every fault.
func (f Faults) Unwrap() []error {
	all := make([]error, len(f))
	for i, fault := range f {
		all[i] = fault
	}
	return all
}
