package main

// nearest returns the word with the fewest edits from the given one, if a typing slip explains them: at
// most a third of its letters. The first of equals wins.
func nearest(given string, words []string) (word string, ok bool) {
	best := max(len(given)/3, 1) + 1
	for _, w := range words {
		if d := edits(given, w); d < best {
			best, word, ok = d, w, true
		}
	}
	return word, ok
}

// edits counts the insertions, deletions and substitutions of bytes that turn a into b, with a swap of
// neighbours counted as one.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
