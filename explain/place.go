package explain

import (
	"slices"

	"carve/cluster"
	"carve/mesh"
	"carve/plan"
)

// places is where the ranks are on the cluster.
type places struct {
	mesh    mesh.Mesh
	machine cluster.Cluster
	sets    map[string]mesh.Axes // that the members of a group differ on, by the group's name
	spans   map[mesh.Axes]int    // outermost level that a group over a set of axes crosses
}

func newPlaces(p plan.Plan, m mesh.Mesh) *places {
	return &places{mesh: m, machine: p.Cluster.Machine, sets: map[string]mesh.Axes{}, spans: map[mesh.Axes]int{}}
}

// varying is the axes on which the members of a group differ.
func (p *places) varying(name string, ranks []int) mesh.Axes {
	if set, ok := p.sets[name]; ok {
		return set
	}
	var set, left mesh.Axes
	for _, a := range mesh.All {
		if p.mesh.Degree(a) > 1 {
			left |= mesh.Of(a)
		}
	}
	first := p.mesh.Coordinates(ranks[0])
	for _, r := range ranks {
		for _, a := range mesh.All {
			if left.Has(a) && p.mesh.Coordinate(r, a) != first[a] {
				set |= mesh.Of(a)
				left &^= mesh.Of(a)
			}
		}
		if left == 0 {
			break
		}
	}
	p.sets[name] = set
	return set
}

// link is the outermost level that a group over a set of axes crosses.
func (p *places) link(set mesh.Axes) Link {
	span, ok := p.spans[set]
	if !ok {
		sizes := p.machine.Sizes()
		for span < len(sizes) && p.crosses(set, sizes[span]) {
			span++
		}
		p.spans[set] = span
	}
	return p.level(span)
}

// crosses tells whether any group over a set of axes lies in more than one block of a number of consecutive ranks. Ranks of a
// group ascend by as much in every group, so that first ranks decide, and of them only where they lie in a block.
func (p *places) crosses(set mesh.Axes, size int) bool {
	if p.mesh.World() <= size {
		return false
	}
	length, firsts := 0, []int{0}
	for _, a := range mesh.All {
		degree, stride := p.mesh.Degree(a), p.stride(a)
		if set.Has(a) {
			length += (degree - 1) * stride
			continue
		}
		line := len(firsts)
		for i := 1; i < degree && i*stride%size != 0; i++ {
			for _, first := range firsts[:line] {
				firsts = append(firsts, (first+i*stride)%size)
			}
		}
	}
	return slices.Max(firsts)+length >= size
}

// stride is the distance in ranks between neighbours on an axis.
func (p *places) stride(a mesh.Axis) int {
	if p.mesh.Degree(a) == 1 {
		return 0
	}
	var at mesh.Coordinates
	at[a] = 1
	return p.mesh.Rank(at)
}

// pair is the level between two ranks.
func (p *places) pair(a, b int) Link { return p.level(mesh.Span([]int{a, b}, p.machine.Sizes())) }

// level describes a level; the cluster may not know it.
func (p *places) level(span int) Link {
	if span >= len(p.machine.Levels) {
		return Link{Level: span}
	}
	l := p.machine.Levels[span]
	return Link{Name: l.Name, Bandwidth: l.Bandwidth, Level: span}
}

// mostNodes bounds the nodes that a report shows.
const mostNodes = 8

// topology is the ranks on the nodes, the first ones of them.
func (p *places) topology(axes []Axis) Topology {
	node, world := max(p.machine.Node, 1), p.mesh.World()
	if len(p.machine.Levels) == 0 {
		node = world
	}
	t := Topology{Nodes: (world + node - 1) / node, PerNode: node, Levels: []Tier{}, Shown: []Node{}}
	if len(p.machine.Levels) > 0 {
		t.Idle = max(p.machine.Devices()-world, 0)
	}
	for i, l := range p.machine.Levels {
		tier := Tier{Link: p.level(i), Size: l.Size, Axes: []string{}}
		for _, a := range axes {
			if a.Link.Level == i {
				tier.Axes = append(tier.Axes, a.Name)
			}
		}
		t.Levels = append(t.Levels, tier)
	}
	for i := range min(t.Nodes, mostNodes) {
		n := Node{Index: i}
		for r := i * node; r < min((i+1)*node, world) && len(n.Ranks) < mostSeats; r++ {
			n.Ranks = append(n.Ranks, p.seat(r))
		}
		t.Shown = append(t.Shown, n)
	}
	return t
}

// mostSeats bounds the ranks that a report shows of a node.
const mostSeats = 72

// seat is a rank with its coordinates.
func (p *places) seat(rank int) Seat {
	s := Seat{Rank: rank, Coordinates: map[string]int{}}
	for _, a := range mesh.All {
		if p.mesh.Degree(a) > 1 {
			s.Coordinates[a.String()] = p.mesh.Coordinate(rank, a)
		}
	}
	return s
}
