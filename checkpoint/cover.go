package checkpoint

import (
	"errors"
	"fmt"

	"carve/mesh"
)

// checkCover holds that the slices of a tensor are disjoint and cover it: none overlaps another, and
// together they have as many elements as the tensor.
func checkCover(t Tensor) error {
	const limit = 1 << 12
	if len(t.Slices) > limit {
		return fmt.Errorf("%d slices; at most %d", len(t.Slices), limit)
	}
	have := 0
	for i, s := range t.Slices {
		have += s.Region.Elements()
		for _, other := range t.Slices[:i] {
			if overlap(s.Region, other.Region) {
				return fmt.Errorf("slices %v and %v overlap", other.Region, s.Region)
			}
		}
	}
	if want := whole(t.Shape).Elements(); have != want {
		return fmt.Errorf("its slices hold %d of %d elements", have, want)
	}
	if len(t.Slices) == 0 {
		return errors.New("it has no slice")
	}
	return nil
}

// overlap tells whether two blocks of one tensor share an element.
func overlap(a, b mesh.Region) bool {
	for i := range a {
		if min(a[i].Stop, b[i].Stop) <= max(a[i].Start, b[i].Start) {
			return false
		}
	}
	return true
}
