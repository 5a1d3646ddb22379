package collective

// all is the one block of a schedule that does not cut the operand.
func (b *builder) all() []int32 { return b.cycle[:1] }

// broadcast spreads the root's operand.
func (b *builder) broadcast(a Algorithm) Schedule {
	switch a {
	case Direct:
		var round []Transfer
		for k := 1; k < b.n; k++ {
			round = append(round, b.message(b.root, b.root+k, b.all()))
		}
		return b.schedule(1, rounds(round))
	case Ring:
		return b.scatter(Tree).then(Broadcast, b.allGather(Ring))
	case Halving:
		return b.scatter(Tree).then(Broadcast, b.allGather(Doubling))
	case Tree, Doubling, Hierarchical, numAlgorithms:
	}
	return b.schedule(1, b.tree(func(int, int) []int32 { return b.all() }))
}

// rounds is the one round of a schedule, or none when it is empty.
func rounds(only []Transfer) [][]Transfer {
	if len(only) == 0 {
		return nil
	}
	return [][]Transfer{only}
}

// tree is the binomial tree of the root, largest subtrees first. carries is what a subtree of k members from distance d from the root on
// gets.
func (b *builder) tree(carries func(d, k int) []int32) (list [][]Transfer) {
	for half := 1 << log(b.n) / 2; half > 0; half /= 2 {
		var round []Transfer
		for d := 0; d+half < b.n; d += 2 * half {
			round = append(round, b.message(b.root+d, b.root+d+half, carries(d+half, min(half, b.n-d-half))))
		}
		list = append(list, round)
	}
	return list
}

// scatter hands out the root's blocks.
func (b *builder) scatter(a Algorithm) Schedule {
	if a == Direct {
		var round []Transfer
		for k := 1; k < b.n; k++ {
			round = append(round, b.message(b.root, b.root+k, b.run(b.root+k, 1)))
		}
		return b.schedule(b.n, rounds(round))
	}
	return b.schedule(b.n, b.tree(func(d, k int) []int32 { return b.run(b.root+d, k) }))
}

// allGather spreads every member's block.
func (b *builder) allGather(a Algorithm) Schedule {
	var list [][]Transfer
	switch a {
	case Direct: // in the order of distance, so that no two send to one member at once
		var round []Transfer
		for k := 1; k < b.n; k++ {
			for i := range b.n {
				round = append(round, b.message(i, i+k, b.run(i, 1)))
			}
		}
		list = rounds(round)
	case Ring:
		for k := range b.n - 1 {
			var round []Transfer
			for i := range b.n {
				round = append(round, b.message(i, i+1, b.run(i-k, 1)))
			}
			list = append(list, round)
		}
	case Doubling: // member i holds blocks [i, i+d) and gets [i+d, i+2d) from member i+d
		for d := 1; d < b.n; d *= 2 {
			var round []Transfer
			for i := range b.n {
				round = append(round, b.message(i+d, i, b.run(i+d, min(d, b.n-d))))
			}
			list = append(list, round)
		}
	case Tree:
		root := *b
		root.root = 0
		return root.scatter(Tree).reversed(Gather).then(AllGather, root.wholeTree())
	case Halving, Hierarchical, numAlgorithms:
	}
	return b.schedule(b.n, list)
}

// wholeTree is a binomial broadcast of all blocks.
func (b *builder) wholeTree() Schedule {
	return b.schedule(b.n, b.tree(func(int, int) []int32 { return b.run(0, b.n) }))
}

// allReduce combines every member's operand for every member.
func (b *builder) allReduce(a Algorithm) Schedule {
	switch a {
	case Direct, Ring:
		spread := b.allGather(a)
		return spread.reversed(AllReduce).then(AllReduce, spread)
	case Halving:
		spread := b.allGather(Doubling)
		return spread.reversed(AllReduce).then(AllReduce, spread)
	case Tree:
		spread := b.broadcast(Tree)
		return spread.reversed(AllReduce).then(AllReduce, spread)
	case Doubling:
		var list [][]Transfer
		for d := 1; d < b.n; d *= 2 {
			var round []Transfer
			for i := range b.n {
				round = append(round, b.message(i, i^d, b.all()))
			}
			list = append(list, round)
		}
		return b.schedule(1, list)
	case Hierarchical, numAlgorithms:
	}
	return Schedule{}
}

// allToAll brings member i's block for member j from i to j.
func (b *builder) allToAll(a Algorithm) Schedule {
	if a == Direct {
		var round []Transfer
		for k := 1; k < b.n; k++ {
			for i := range b.n {
				round = append(round, b.message(i, i+k, b.run(i+k, 1)))
			}
		}
		return b.schedule(b.n, rounds(round))
	}
	// What has distance d still to go moves by each power of two in d.
	var list [][]Transfer
	for step := 1; step < b.n; step *= 2 {
		var round []Transfer
		for i := range b.n {
			t := b.message(i, i+step, nil)
			for d := step; d < b.n; d++ {
				if d&step != 0 && d&(step-1) == 0 {
					t.Blocks = append(t.Blocks, b.cycle[i+d])
				}
			}
			t.Parts = int32(bits(b.n, step))
			round = append(round, t)
		}
		list = append(list, round)
	}
	return b.schedule(b.n, list)
}

// bits is how many of the distances 1 … n-1 have a bit set.
func bits(n, bit int) (count int) {
	for d := 1; d < n; d++ {
		if d&bit != 0 {
			count++
		}
	}
	return count
}

// barrier only says that all have come.
func (b *builder) barrier(a Algorithm) Schedule {
	none := func(int, int) []int32 { return nil }
	switch a {
	case Direct:
		s := b.allToAll(Direct)
		for _, round := range s.Rounds {
			for i := range round {
				round[i].Blocks, round[i].Parts = nil, 0
			}
		}
		s.Blocks = 0
		return s
	case Tree:
		out := b.schedule(0, b.tree(none))
		return out.reversed(Barrier).then(Barrier, out)
	case Ring, Doubling, Halving, Hierarchical, numAlgorithms:
	}
	var list [][]Transfer
	for d := 1; d < b.n; d *= 2 {
		var round []Transfer
		for i := range b.n {
			round = append(round, b.message(i, i+d, nil))
		}
		list = append(list, round)
	}
	return b.schedule(0, list)
}
