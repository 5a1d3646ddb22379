package collective

import "carve/unit"

// Link is what messages between members cost: Latency and a time per byte.
type Link struct {
	Latency unit.Seconds
	PerByte float64 // seconds
}

// messages is the time of some messages one after the other, of so many bytes altogether.
func (l Link) messages(count, bytes float64) unit.Seconds {
	return unit.Seconds(count*float64(l.Latency) + bytes*l.PerByte)
}

// Flat is what a flat algorithm costs among n members whose links are all alike; bytes is S of the package comment. It
// returns false when the algorithm has no way for the operation and number.
func Flat(op Op, a Algorithm, n int, bytes float64, l Link) (unit.Seconds, bool) {
	if !a.offers(op, n) {
		return 0, false
	}
	others, steps := float64(n-1), float64(log(n))
	block := bytes / float64(n)
	switch op {
	case Barrier:
		return l.messages(barrierMessages(a, n), 0), true
	case Broadcast, Reduce:
		return l.broadcast(a, n, bytes), true
	case Gather, Scatter:
		if a == Direct {
			return l.messages(others, others*block), true
		}
		return l.messages(steps, others*block), true
	case AllGather, ReduceScatter:
		return l.allGather(a, n, bytes), true
	case AllReduce:
		switch a {
		case Tree:
			return l.messages(2*steps, 2*steps*bytes), true
		case Doubling:
			return l.messages(steps, steps*bytes), true
		case Halving:
			return 2 * l.allGather(Doubling, n, bytes), true
		case Direct, Ring, Hierarchical, numAlgorithms:
		}
		return 2 * l.allGather(a, n, bytes), true
	case AllToAll:
		if a == Direct {
			return l.messages(others, others*block), true
		}
		parts := 0
		for bit := 1; bit < n; bit *= 2 {
			parts += bits(n, bit)
		}
		return l.messages(steps, float64(parts)*block), true
	case numOps:
	}
	return 0, false
}

// barrierMessages is how many messages follow each other in a barrier.
func barrierMessages(a Algorithm, n int) float64 {
	switch a {
	case Direct:
		return float64(n - 1)
	case Tree:
		return float64(2 * log(n))
	case Ring, Doubling, Halving, Hierarchical, numAlgorithms:
	}
	return float64(log(n))
}

// broadcast is the cost of a broadcast or a reduce.
func (l Link) broadcast(a Algorithm, n int, bytes float64) unit.Seconds {
	others, steps := float64(n-1), float64(log(n))
	scatter := l.messages(steps, others*bytes/float64(n))
	switch a {
	case Direct:
		return l.messages(others, others*bytes)
	case Ring:
		return scatter + l.allGather(Ring, n, bytes)
	case Halving:
		return scatter + l.allGather(Doubling, n, bytes)
	case Tree, Doubling, Hierarchical, numAlgorithms:
	}
	return l.messages(steps, steps*bytes)
}

// allGather is the cost of an all-gather or a reduce-scatter.
func (l Link) allGather(a Algorithm, n int, bytes float64) unit.Seconds {
	others, steps := float64(n-1), float64(log(n))
	block := bytes / float64(n)
	switch a {
	case Doubling:
		return l.messages(steps, others*block)
	case Tree:
		return l.messages(2*steps, others*block+steps*bytes)
	case Direct, Ring, Halving, Hierarchical, numAlgorithms:
	}
	return l.messages(others, others*block)
}
