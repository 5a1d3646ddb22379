package schedule

// allForwardAllBackward is GPipe (Huang et al. 2019, arXiv 1811.06965): every forward, then every backward, both in the
// order of micro-batches. A rank holds all m of them at its peak.
func allForwardAllBackward(m int) []Action {
	list := make([]Action, 0, 2*m)
	for micro := range m {
		list = append(list, Action{Op: Forward, Micro: micro})
	}
	for micro := range m {
		list = append(list, Action{Op: Backward, Micro: micro})
	}
	return list
}

// oneForwardOneBackward is PipeDream-flush (Narayanan et al. 2021, arXiv 2104.04473, figure 4): as many forwards as there
// are ranks after this one, then a forward and a backward in turn, then the backwards that are left.
func oneForwardOneBackward(after, m int) []Action {
	warmup := min(after, m)
	list := make([]Action, 0, 2*m)
	for micro := range warmup {
		list = append(list, Action{Op: Forward, Micro: micro})
	}
	for micro := range m {
		if warmup+micro < m {
			list = append(list, Action{Op: Forward, Micro: warmup + micro})
		}
		list = append(list, Action{Op: Backward, Micro: micro})
	}
	return list
}
