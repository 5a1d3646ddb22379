package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// clone copies what mutations change.
func clone(p *Program) *Program {
	c := *p
	c.Pipes = slices.Clone(p.Pipes)
	c.Stages = make([][]Stage, len(p.Stages))
	for i := range c.Stages {
		c.Stages[i] = slices.Clone(p.Stages[i])
	}
	c.Ranks = make([][]Action, len(p.Ranks))
	for i := range c.Ranks {
		c.Ranks[i] = slices.Clone(p.Ranks[i])
	}
	return &c
}

// small has a spec of every kind that mutations are tried on.
func small() []Spec {
	return []Spec{
		{Kind: AllForwardAllBackward, Ranks: 3, Micro: 3},
		{Kind: OneForwardOneBackward, Ranks: 3, Micro: 4},
		{Kind: Interleaved, Ranks: 2, Chunks: 3, Micro: 4},
		{Kind: Interleaved, Ranks: 3, Chunks: 2, Micro: 3},
		{Kind: ZeroBubbleH1, Ranks: 3, Micro: 4},
		{Kind: ZeroBubbleV, Ranks: 2, Micro: 4},
		{Kind: ZeroBubbleV, Ranks: 1, Micro: 2},
		{Kind: DualPipe, Ranks: 4, Micro: 8},
		{Kind: DualPipe, Ranks: 2, Micro: 4},
		{Kind: DualPipeV, Ranks: 2, Micro: 5},
	}
}

func generate(t testing.TB, s Spec) *Program {
	t.Helper()
	p, err := Generate(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestGeneratedPass holds that Check and the dumb executor accept every generated program.
func TestGeneratedPass(t *testing.T) {
	grid(t, func(s Spec, p *Program) {
		report, err := Check(p)
		if err != nil || !report.DeadlockFree || report.Actions != p.Actions() {
			t.Fatalf("%v: %+v, %v", s, report, err)
		}
		if s.Micro <= 8 {
			if err := execute(p); err != nil {
				t.Fatalf("%v: %v", s, err)
			}
		}
	})
}

// TestEveryActionCounts removes and doubles every single action: none is superfluous, none may come twice.
func TestEveryActionCounts(t *testing.T) {
	for _, s := range small() {
		p := generate(t, s)
		for rank := range p.Ranks {
			for i, a := range p.Ranks[rank] {
				less, more := clone(p), clone(p)
				less.Ranks[rank] = slices.Delete(less.Ranks[rank], i, i+1)
				more.Ranks[rank] = slices.Insert(more.Ranks[rank], i, a)
				for name, mutant := range map[string]*Program{"without": less, "twice": more} {
					if _, err := Check(mutant); err == nil {
						t.Errorf("%v: %s action %d of rank %d, %s, passes", s, name, i, rank, a)
					}
					if execute(mutant) == nil {
						t.Errorf("%v: %s action %d of rank %d, %s, executes", s, name, i, rank, a)
					}
				}
			}
		}
	}
}

// mutate changes one thing of a program at random.
func mutate(t *rapid.T, p *Program) {
	rank := rapid.IntRange(0, len(p.Ranks)-1).Draw(t, "rank")
	list := p.Ranks[rank]
	if len(list) == 0 {
		return
	}
	i := rapid.IntRange(0, len(list)-1).Draw(t, "index")
	other := rapid.IntRange(-1, 4).Draw(t, "number")
	switch rapid.IntRange(0, 12).Draw(t, "mutation") {
	case 0:
		p.Ranks[rank] = slices.Delete(list, i, i+1)
	case 1:
		p.Ranks[rank] = slices.Insert(list, rapid.IntRange(0, len(list)).Draw(t, "to"), list[i])
	case 2:
		j := rapid.IntRange(0, len(list)-1).Draw(t, "with")
		list[i], list[j] = list[j], list[i]
	case 3, 4, 5:
		j := min(i+1, len(list)-1)
		list[i], list[j] = list[j], list[i]
	case 6: // move
		a := list[i]
		list = slices.Delete(list, i, i+1)
		p.Ranks[rank] = slices.Insert(list, rapid.IntRange(0, len(list)).Draw(t, "to"), a)
	case 7:
		list[i].Micro = other
	case 8:
		list[i].Chunk = other
	case 9:
		list[i].Peer = other
	case 10:
		list[i].Op = Op(rapid.IntRange(0, 10).Draw(t, "op"))
	case 11:
		list[i].With = Half{Op(rapid.IntRange(0, 3).Draw(t, "op")), other, rapid.IntRange(0, 1).Draw(t, "chunk")}
	case 12:
		if rapid.Bool().Draw(t, "stages") {
			p.Stages[rank][0].Index = other
		} else {
			p.Pipes[rapid.IntRange(0, len(p.Pipes)-1).Draw(t, "micro")] = other
		}
	}
}

// TestMutants holds that Check accepts a mutant exactly where the dumb executor reaches its end.
func TestMutants(t *testing.T) {
	var programs []*Program
	for _, s := range small() {
		programs = append(programs, generate(t, s))
	}
	passed, refused := 0, map[Rule]int{}
	for range 20 {
		rapid.Check(t, func(t *rapid.T) {
			p := clone(programs[rapid.IntRange(0, len(programs)-1).Draw(t, "program")])
			for range rapid.IntRange(1, 3).Draw(t, "mutations") {
				mutate(t, p)
			}
			report, err := Check(p)
			if twin := execute(p); (err == nil) != (twin == nil) {
				t.Fatalf("Check: %v\nexecutor: %v\n%s", err, twin, lines(p))
			}
			if err == nil {
				passed++
				if !report.DeadlockFree {
					t.Fatal("accepted and not free of deadlock")
				}
				if _, err := Time(p, UnitCost()); err != nil {
					t.Fatal(err)
				}
				return
			}
			var faults Faults
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("error %v is no Faults", err)
			}
			for _, f := range faults {
				refused[f.Rule]++
				if f.Message == "" || !strings.Contains(f.Error(), ";") && f.Rule != RuleDeadlock {
					t.Fatalf("fault %v has no remedy", f)
				}
			}
		})
	}
	if passed < 100 {
		t.Errorf("only %d mutants passed", passed)
	}
	for _, rule := range []Rule{RulePlacement, RuleForeign, RuleMissing, RuleDoubled, RuleOrder, RulePeer, RuleMatch, RuleDeadlock} {
		if refused[rule] == 0 {
			t.Errorf("no mutant broke rule %s", rule)
		}
	}
}

// TestFaults plants a fault of each rule and holds what is said about it.
func TestFaults(t *testing.T) {
	base := Spec{Kind: OneForwardOneBackward, Ranks: 2, Micro: 2}
	cases := []struct {
		name  string
		rule  Rule
		plant func(p *Program)
		want  string
	}{
		{
			"stage twice", RulePlacement, func(p *Program) { p.Stages[1][0].Index = 0 },
			"schedule: chunk 0 of rank 1 holds stage 0 of pipe 0, which is out of range or held twice; place every stage of every pipe once",
		},
		{
			"unknown micro-batch", RuleForeign, func(p *Program) { p.Ranks[0][0].Micro = 7 },
			"schedule: rank 0, action 0, F7: micro-batch 7 does not pass a chunk 0 of this rank; use a micro-batch of 0 to 1 that travels the pipe of a chunk of 0 to 0",
		},
		{
			"send left out", RuleMissing, func(p *Program) { p.Ranks[0] = slices.Delete(p.Ranks[0], 1, 2) },
			"schedule: rank 0, action 7, SendActivation 0 > 1: it is nowhere in the list; add it",
		},
		{
			"forward twice", RuleDoubled, func(p *Program) { p.Ranks[0] = slices.Insert(p.Ranks[0], 1, p.Ranks[0][0]) },
			"schedule: rank 0, action 1, F0: this forward has run; run it once",
		},
		{
			"backward too early", RuleOrder, func(p *Program) { p.Ranks[1][1], p.Ranks[1][2] = p.Ranks[1][2], p.Ranks[1][1] },
			"schedule: rank 1, action 1, B0: its forward has not run; move it after F0",
		},
		{
			"wrong peer", RulePeer, func(p *Program) { p.Ranks[0][1].Peer = 0 },
			"schedule: rank 0, action 1, SendActivation 0 > 0: the neighbouring stage is on rank 1; use it as the peer",
		},
		{"sent in another order", RuleMatch, func(p *Program) {
			l := p.Ranks[0]
			p.Ranks[0] = append([]Action{l[0], l[2], l[3], l[1]}, l[4:]...)
		}, "schedule: rank 1, action 0, RecvActivation 0 < 0: the next message from rank 0 is that of its action 2, SendActivation 1 > 1; receive in the order of sending"},
		{"circle", RuleDeadlock, func(p *Program) {
			l := p.Ranks[0]
			p.Ranks[0] = append([]Action{l[0], l[2], l[4], l[5], l[1], l[3]}, l[6:]...)
		}, "schedule: rank 0, action 2, RecvGradient 0 < 1: rank 0 waits at action 2 for rank 1, rank 1 waits at action 0 for rank 0, " +
			"in a circle; move a send that one of them waits for before the receive that keeps it back"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := generate(t, base)
			c.plant(p)
			_, err := Check(p)
			if err == nil {
				t.Fatal("passes")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
			if fault, ok := errors.AsType[*Fault](err); !ok || fault.Rule != c.rule {
				t.Errorf("breaks rule %v, want %s", fault, c.rule)
			}
			if execute(p) == nil {
				t.Error("executes")
			}
		})
	}
}

// TestLarge holds that a large program is checked: PP 16, 4 chunks, 512 micro-batches.
func TestLarge(t *testing.T) {
	p := generate(t, Spec{Kind: Interleaved, Ranks: 16, Chunks: 4, Micro: 512})
	report, err := Check(p)
	if err != nil || report.Actions != 2*16*4*512+4*(16*4-1)*512 {
		t.Errorf("%d actions, %v", report.Actions, err)
	}
}

// TestStuck holds that Time names who waits for ever.
func TestStuck(t *testing.T) {
	p := &Program{Name: "none", Stages: [][]Stage{{{}}, {{Index: 1}}}, Pipes: []int{0}, Ranks: [][]Action{{{Op: RecvGradient, Peer: 1}}, nil}}
	_, err := Time(p, UnitCost())
	if want := "schedule: rank 0 waits for ever at action 0, RecvGradient 0 < 1; Check tells why"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
