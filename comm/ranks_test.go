package comm

import "testing"

// TestCheckRanks holds what a group may be, and that the usual one takes no memory to check.
func TestCheckRanks(t *testing.T) {
	for _, c := range []struct {
		name  string
		ranks []int
		rank  int
		fine  bool
	}{
		{"ascending", []int{0, 2, 5}, 2, true},
		{"any order", []int{5, 0, 2}, 2, true},
		{"one", []int{7}, 7, true},
		{"none", nil, 0, false},
		{"without the rank", []int{0, 2, 5}, 3, false},
		{"twice", []int{0, 2, 2}, 2, false},
		{"negative", []int{-1, 2}, 2, false},
		{"beyond", []int{2, 8}, 2, false},
	} {
		if err := checkRanks("g", c.ranks, c.rank, 8); (err == nil) != c.fine {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	many := make([]int, 1<<16)
	for i := range many {
		many[i] = i
	}
	if n := testing.AllocsPerRun(1, func() {
		if err := checkRanks("g", many, 5, len(many)); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
