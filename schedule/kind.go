package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is a family of schedules. The names are those of the plan file.
type Kind uint8

// The schedules, by their names "afab", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe" and "dualpipe-v".
const (
	AllForwardAllBackward Kind = iota // GPipe
	OneForwardOneBackward             // PipeDream-flush
	Interleaved                       // 1F1B over several chunks per rank
	ZeroBubbleH1                      // weight gradients fill the bubble, memory of 1F1B
	ZeroBubbleV                       // two chunks per rank in V shape
	DualPipe                          // both directions at once, two copies of the parameters
	DualPipeV                         // its V-shaped half, one copy
)

func kindNames() []string {
	return []string{"afab", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe", "dualpipe-v"}
}

// Kinds returns every schedule, in the order of the constants.
func Kinds() []Kind {
	kinds := make([]Kind, len(kindNames()))
	for i := range kinds {
		kinds[i] = Kind(i)
	}
	return kinds
}

// String returns the name in the plan file.
func (k Kind) String() string {
	if names := kindNames(); int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("schedule %d", uint8(k))
}

// ParseKind returns the schedule of a name.
func ParseKind(name string) (Kind, error) {
	if i := slices.Index(kindNames(), name); i >= 0 {
		return Kind(i), nil
	}
	return 0, fmt.Errorf("schedule: no schedule %q; use %s", name, strings.Join(kindNames(), ", "))
}
