package verify

import (
	"math/rand/v2"
	"slices"

	"carve/plan"
)

// Matrix is a set of layouts in which every pair of features that can occur together does (pairwise coverage; Cohen et al.
// 1997), and which then goes on to features three at a time until it has mostLayouts. The set is computed: what layouts are
// legal is what plan and parallel say, so it grows with them. It is the same in every run.
func Matrix() []plan.Plan {
	g := newGenerator(grid())
	g.pairs()
	g.fill(mostLayouts)
	return g.plans
}

// mostLayouts is how large the matrix becomes when pairs need fewer.
const mostLayouts = 180

// generator makes layouts that cover features.
type generator struct {
	aspects []aspect
	random  *rand.Rand
	offset  []int // of an aspect's first choice among all
	ids     map[Feature]int
	n       int             // of all choices
	covered []bool          // pairs, n·n
	triples map[[3]int]bool // covered ones of plans so far
	plans   []plan.Plan
}

func newGenerator(aspects []aspect) *generator {
	g := &generator{aspects: aspects, random: rand.New(rand.NewPCG(1, 2)), ids: map[Feature]int{}, triples: map[[3]int]bool{}}
	for _, a := range aspects {
		g.offset = append(g.offset, g.n)
		for _, c := range a.choices {
			g.ids[Feature{a.name, c.name}] = g.n
			g.n++
		}
	}
	g.covered = make([]bool, g.n*g.n)
	return g
}

// features are the numbers of the features of a plan, in ascending order.
func (g *generator) features(p plan.Plan) (ids []int) {
	for _, f := range Features(p) {
		if id, ok := g.ids[f]; ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// gain is how many pairs a plan would cover that nothing does yet.
func (g *generator) gain(ids []int) (n int) {
	for i, a := range ids {
		for _, b := range ids[i+1:] {
			if !g.covered[a*g.n+b] {
				n++
			}
		}
	}
	return n
}

// keep adds a plan to the matrix.
func (g *generator) keep(p plan.Plan, ids []int) {
	p.Seed = uint64(len(g.plans) + 1)
	g.plans = append(g.plans, p)
	for i, a := range ids {
		for j, b := range ids[i+1:] {
			g.covered[a*g.n+b] = true
			for _, c := range ids[i+j+2:] {
				g.triples[[3]int{a, b, c}] = true
			}
		}
	}
}

// How often a pair is tried with other choices beside it before it counts as impossible, and how many of the legal ones are
// compared.
const (
	tries      = 60
	candidates = 6
)

// pairs covers every pair of choices that some legal layout has.
func (g *generator) pairs() {
	for a := range g.aspects {
		for b := a + 1; b < len(g.aspects); b++ {
			for i := range g.aspects[a].choices {
				for j := range g.aspects[b].choices {
					if !g.covered[(g.offset[a]+i)*g.n+g.offset[b]+j] {
						g.pair(a, i, b, j)
					}
				}
			}
		}
	}
}

// pair adds the layout that has two choices and covers most besides, if there is one.
func (g *generator) pair(a, i, b, j int) {
	var best plan.Plan
	var bestIDs []int
	most, found := 0, 0
	for try := 0; try < tries && found < candidates; try++ {
		p, ok := g.complete(map[int]int{a: i, b: j}, try)
		if !ok {
			continue
		}
		ids := g.features(p)
		if !slices.Contains(ids, g.offset[a]+i) || !slices.Contains(ids, g.offset[b]+j) || !legal(p) {
			continue
		}
		found++
		if n := g.gain(ids); n > most {
			best, bestIDs, most = p, ids, n
		}
	}
	if most > 0 {
		g.keep(best, bestIDs)
	}
}

// complete makes a plan of some choices: what they need first, and the rest by chance, the more of it the earlier the try. It
// reports false where needs contradict each other.
func (g *generator) complete(fixed map[int]int, try int) (plan.Plan, bool) {
	for changed := true; changed; {
		changed = false
		for a := range g.aspects { // in order: the same in every run
			if i, ok := fixed[a]; ok {
				for _, n := range g.aspects[a].choices[i].needs {
					more, ok := g.meet(fixed, n, try)
					if !ok {
						return plan.Plan{}, false
					}
					changed = changed || more
				}
			}
		}
	}
	choices := make([]int, len(g.aspects))
	for a := range g.aspects {
		i, ok := fixed[a]
		if !ok && g.random.IntN(tries) >= try { // later tries leave more at the first choice, which goes with most
			i = g.random.IntN(len(g.aspects[a].choices))
		}
		choices[a] = i
	}
	return assemble(g.aspects, choices), true
}

// meet makes a choice that another one needs, if that is still open; false where it was made otherwise.
func (g *generator) meet(fixed map[int]int, n need, try int) (more, ok bool) {
	a := slices.IndexFunc(g.aspects, func(a aspect) bool { return a.name == n.aspect })
	if i, made := fixed[a]; made {
		return false, slices.Contains(n.values, g.aspects[a].choices[i].name)
	}
	value := n.values[0]
	if g.random.IntN(tries) >= try {
		value = n.values[g.random.IntN(len(n.values))]
	}
	fixed[a] = slices.IndexFunc(g.aspects[a].choices, func(c choice) bool { return c.name == value })
	return true, true
}

// fill adds layouts until there are enough, each of some tried the one with most triples that no other has.
func (g *generator) fill(enough int) {
	for tried := 0; len(g.plans) < enough && tried < enough*tries; {
		var best plan.Plan
		var bestIDs []int
		most := 0
		for range candidates {
			p, ok := g.complete(map[int]int{}, g.random.IntN(tries))
			tried++
			if !ok || !legal(p) {
				continue
			}
			ids := g.features(p)
			if n := g.newTriples(ids); n > most {
				best, bestIDs, most = p, ids, n
			}
		}
		if most > 0 {
			g.keep(best, bestIDs)
		}
	}
}

func (g *generator) newTriples(ids []int) (n int) {
	for i, a := range ids {
		for j, b := range ids[i+1:] {
			for _, c := range ids[i+j+2:] {
				if !g.triples[[3]int{a, b, c}] {
					n++
				}
			}
		}
	}
	return n
}

// Sample is n of some plans, by a seed.
func Sample(plans []plan.Plan, n int, seed uint64) []plan.Plan {
	random := rand.New(rand.NewPCG(seed, 3))
	picked := random.Perm(len(plans))[:min(n, len(plans))]
	slices.Sort(picked)
	var out []plan.Plan
	for _, i := range picked {
		out = append(out, plans[i])
	}
	return out
}
