package cost

import (
	"math"

	"carve/collective"
	"carve/mesh"
	"carve/unit"
)

// Group is where the members of a group lie on the levels of links: what their collectives cost. It is a plain value.
type Group struct {
	size  int
	tiers [maxTiers]tier
	count int // of tiers in use
}

// maxTiers is the most levels that a cluster has.
const maxTiers = 8

// tier is a level on which members differ.
type tier struct {
	level   int
	members int // that differ there
	inside  int // members of each of those
	link    collective.Link
}

// Size is the number of members.
func (g *Group) Size() int { return g.size }

// Level is the outermost level that the group crosses; 0 for a group of one.
func (g *Group) Level() int {
	if g.count == 0 {
		return 0
	}
	return g.tiers[g.count-1].level
}

// GroupOf is the group of the ranks that differ on a set of axes only, of a mesh whose ranks are the devices in their order.
// A level's domain that holds no whole number of steps along an axis counts as holding as many as fit.
func (m *Machine) GroupOf(grid mesh.Mesh, axes mesh.Axes) Group {
	g := Group{size: grid.Size(axes)}
	inside := 1
	for level, l := range m.Cluster.Levels {
		within := g.size
		if level < len(m.Cluster.Levels)-1 {
			within = min(membersWithin(grid, axes, l.Size), g.size)
		}
		if within > inside {
			g.add(m, level, (within+inside-1)/inside, inside)
			inside = within
		}
	}
	return g
}

// GroupOfRanks is the group of the given ranks, as many of them in every domain as in that of the first.
func (m *Machine) GroupOfRanks(ranks []int) Group {
	g := Group{size: len(ranks)}
	inside := 1
	for level, l := range m.Cluster.Levels {
		within := len(ranks)
		if level < len(m.Cluster.Levels)-1 {
			within = 0
			for _, r := range ranks {
				if r/l.Size == ranks[0]/l.Size {
					within++
				}
			}
		}
		if within > inside {
			g.add(m, level, (within+inside-1)/inside, inside)
			inside = within
		}
	}
	return g
}

// membersWithin is how many of a group's members a block of consecutive ranks holds.
func membersWithin(grid mesh.Mesh, axes mesh.Axes, size int) int {
	members, stride := 1, 1
	for _, a := range grid.Order() {
		degree := grid.Degree(a)
		if axes.Has(a) {
			members *= max(1, min(degree, size/stride))
		}
		stride *= degree
	}
	return members
}

// add appends a tier.
func (g *Group) add(m *Machine, level, members, inside int) {
	l := m.Cluster.Levels[level]
	links := m.Constants.Links
	reached := links[min(level, len(links)-1)] * float64(l.Bandwidth)
	crowd := 1.0
	if l.Oversubscription > 1 {
		within := 1
		if level > 0 {
			within = m.Cluster.Levels[level-1].Size
		}
		crowd = max(1, float64(inside)*l.Oversubscription/float64(within))
	}
	if level > 0 && m.Congestion > 0 {
		crowd *= math.Pow(float64(members), m.Congestion)
	}
	g.tiers[g.count] = tier{level, members, inside, collective.Link{Latency: l.Latency, PerByte: crowd / reached}}
	g.count++
}

// Collective is the time of an operation; bytes are those of the whole array, as nccl-tests counts them.
func (g *Group) Collective(op collective.Op, bytes float64) unit.Seconds {
	if g.count == 1 {
		return flat(op, g.tiers[0].members, bytes, g.tiers[0].link)
	}
	var latency, slowest unit.Seconds
	for _, t := range g.tiers[:g.count] {
		latency += flat(op, t.members, 0, collective.Link{Latency: t.link.Latency})
		members, carried := g.carries(op, t, bytes)
		slowest = max(slowest, flat(op, members, carried, collective.Link{PerByte: t.link.PerByte}))
	}
	return latency + slowest
}

// carries is among how many members, and how many of the bytes, a link of a tier takes part in an operation. Rings go around all
// members, as many of them as a tier has members inside, and each takes a share; other operations go tier by tier.
func (g *Group) carries(op collective.Op, t tier, bytes float64) (members int, carried float64) {
	switch op {
	case collective.AllGather, collective.ReduceScatter, collective.AllReduce:
		return g.size, bytes / float64(t.inside)
	default:
		return t.members, bytes
	}
}

// flat is the cost of the best algorithm among members whose links are alike; gathering and scattering have the ring only, as in NCCL
// before 2.23.
func flat(op collective.Op, members int, bytes float64, l collective.Link) (least unit.Seconds) {
	if op == collective.AllGather || op == collective.ReduceScatter {
		least, _ = collective.Flat(op, collective.Ring, members, bytes, l)
		return least
	}
	found := false
	for a := range collective.Hierarchical {
		if cost, ok := collective.Flat(op, a, members, bytes, l); ok && (!found || cost < least) {
			least, found = cost, true
		}
	}
	return least
}

// Message is the time of bytes from one rank to another, over the innermost level that holds both.
func (m *Machine) Message(from, to int, bytes float64) unit.Seconds {
	if len(m.Cluster.Levels) == 0 {
		return 0
	}
	level := m.LevelOf(from, to)
	l := m.Cluster.Levels[level]
	reached := m.Constants.Links[min(level, len(m.Constants.Links)-1)] * float64(l.Bandwidth)
	return l.Latency + unit.Seconds(bytes/reached)
}

// LevelOf is the innermost level that holds two ranks.
func (m *Machine) LevelOf(a, b int) int {
	return min(mesh.Span([]int{a, b}, m.Cluster.Sizes()), len(m.Cluster.Levels)-1)
}
