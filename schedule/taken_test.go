package schedule

import (
	"fmt"
	"testing"
)

// after tells, by following every edge, whether action b cannot have run before action a has: the dumb twin of vector
// clocks.
func after(senders map[spot]spot, a, b spot) bool {
	seen := map[spot]bool{}
	var reach func(s spot) bool
	reach = func(s spot) bool {
		if s == a {
			return true
		}
		if seen[s] {
			return false
		}
		seen[s] = true
		if sender, ok := senders[s]; ok && reach(sender) {
			return true
		}
		return s.index > 0 && reach(spot{s.rank, s.index - 1})
	}
	return reach(b)
}

// TestTaken compares with the twin over all kinds: what Taken names comes after the receive, and the action before it does
// not, or is no later than the send.
func TestTaken(t *testing.T) {
	for _, kind := range Kinds() {
		for _, ranks := range []int{2, 4} {
			spec := Spec{Kind: kind, Ranks: ranks, Micro: 2 * ranks}
			if kind == Interleaved {
				spec.Chunks = 2
			}
			t.Run(fmt.Sprint(kind, ranks), func(t *testing.T) {
				p, err := Generate(spec)
				if err != nil {
					t.Fatal(err)
				}
				senders, receives := map[spot]spot{}, map[spot]spot{}
				newWalker(p).walk(func(at, sender spot) {
					if at != sender {
						senders[at], receives[sender] = sender, at
					}
				})
				taken := Taken(p)
				for send, receive := range receives {
					list, at := p.Ranks[send.rank], taken[send.rank][send.index]
					if at <= send.index || at > len(list) {
						t.Fatalf("%v of rank %d is known at %d", list[send.index], send.rank, at)
					}
					if at < len(list) && !after(senders, receive, spot{send.rank, at}) {
						t.Errorf("%v of rank %d is not known at %v", list[send.index], send.rank, list[at])
					}
					if after(senders, receive, spot{send.rank, at - 1}) {
						t.Errorf("%v of rank %d is known before action %d", list[send.index], send.rank, at)
					}
				}
			})
		}
	}
}

// TestTakenIn1F1B says when by hand: the first stage of two knows of an activation by the gradient that comes back next.
func TestTakenIn1F1B(t *testing.T) {
	p, err := Generate(Spec{Kind: OneForwardOneBackward, Ranks: 2, Micro: 3})
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range Taken(p)[0] {
		a := p.Ranks[0][i]
		if a.Op != SendActivation {
			continue
		}
		got := "the end"
		if at < len(p.Ranks[0]) {
			got = p.Ranks[0][at].String()
		}
		want := Action{Op: RecvGradient, Micro: a.Micro, Peer: 1}.String()
		if got != want {
			t.Errorf("%v is known at %s, want %s", a, got, want)
		}
	}
}
