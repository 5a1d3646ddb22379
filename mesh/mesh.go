package mesh

import "fmt"

// MaxWorld bounds the number of ranks, so that products of degrees cannot overflow.
const MaxWorld = 1 << 24

// Mesh is the grid of ranks: a degree per axis and the order of the rank's digits. It is a plain value,
// comparable with ==. Make one with New; the zero Mesh is not valid.
type Mesh struct {
	degrees Degrees
	order   Order
	stride  [AxisCount]int // distance in ranks between neighbours on an axis
}

// New returns the mesh of the given degrees (zero means 1) and order.
func New(degrees Degrees, order Order) (Mesh, error) {
	if err := order.Validate(); err != nil {
		return Mesh{}, err
	}
	m := Mesh{degrees: degrees, order: order}
	world := 1
	for _, a := range order {
		degree := max(degrees[a], 1)
		if degrees[a] < 0 {
			return Mesh{}, fmt.Errorf("mesh: %s degree %d is negative; use 1 or more", a.Noun(), degrees[a])
		}
		if degree > MaxWorld/world {
			return Mesh{}, fmt.Errorf("mesh: %s degree %d makes more than %d ranks; use smaller degrees", a.Noun(), degree, MaxWorld)
		}
		m.degrees[a], m.stride[a] = degree, world
		world *= degree
	}
	return m, nil
}

// Degrees returns the size of every axis, each at least 1.
func (m Mesh) Degrees() Degrees { return m.degrees }

// Degree returns the size of an axis.
func (m Mesh) Degree(a Axis) int { return m.degrees[a] }

// Order returns the axes from the fastest-varying rank digit to the slowest.
func (m Mesh) Order() Order { return m.order }

// World returns the number of ranks.
func (m Mesh) World() int { return m.degrees.World() }

// Coordinates returns the position of a rank, 0 <= rank < World.
func (m Mesh) Coordinates(rank int) (at Coordinates) {
	for _, a := range All {
		at[a] = m.Coordinate(rank, a)
	}
	return at
}

// Coordinate returns the position of a rank on one axis.
func (m Mesh) Coordinate(rank int, a Axis) int { return rank / m.stride[a] % m.degrees[a] }

// Rank returns the rank at the given coordinates, each within its degree.
func (m Mesh) Rank(at Coordinates) (rank int) {
	for _, a := range All {
		rank += at[a] * m.stride[a]
	}
	return rank
}

// Size returns the number of ranks in a group over a set of axes.
func (m Mesh) Size(set Axes) int { return m.degrees.Over(set) }

// Index returns the position of a rank in its group over a set of axes.
func (m Mesh) Index(rank int, set Axes) (index int) {
	scale := 1
	for _, a := range m.order {
		if set.Has(a) {
			index += m.Coordinate(rank, a) * scale
			scale *= m.degrees[a]
		}
	}
	return index
}

// Group returns the ranks that differ from the given one only on a set of axes, in ascending order. It
// is a slice of the rank grid; the rank itself is at Index(rank, set).
func (m Mesh) Group(rank int, set Axes) []int {
	first := rank
	for _, a := range All {
		if set.Has(a) {
			first -= m.Coordinate(rank, a) * m.stride[a]
		}
	}
	return m.slice(first, set)
}

// Groups returns every group over a set of axes, ordered by first rank: a partition of the ranks.
func (m Mesh) Groups(set Axes) [][]int {
	firsts := m.slice(0, Everything&^set)
	groups := make([][]int, len(firsts))
	for i, first := range firsts {
		groups[i] = m.slice(first, set)
	}
	return groups
}

// slice returns the ranks reached from first, whose coordinates on set are 0, by moving along set.
func (m Mesh) slice(first int, set Axes) []int {
	ranks := make([]int, 1, m.Size(set))
	ranks[0] = first
	for _, a := range m.order { // fastest digit first, so the result ascends
		if !set.Has(a) {
			continue
		}
		line := len(ranks)
		for i := 1; i < m.degrees[a]; i++ {
			for _, rank := range ranks[:line] {
				ranks = append(ranks, rank+i*m.stride[a])
			}
		}
	}
	return ranks
}

// Span returns the innermost of nested domains that holds a whole group: the first i for which all
// ranks lie in one block of sizes[i] consecutive ranks. It is the link level that the group crosses.
// Sizes ascend, each dividing the next; len(sizes) means that no domain holds the group.
func Span(ranks []int, sizes []int) int {
	for i, size := range sizes {
		if oneBlock(ranks, size) {
			return i
		}
	}
	return len(sizes)
}

// oneBlock tells whether all ranks lie in the same block of size consecutive ranks.
func oneBlock(ranks []int, size int) bool {
	for _, rank := range ranks {
		if rank/size != ranks[0]/size {
			return false
		}
	}
	return true
}
