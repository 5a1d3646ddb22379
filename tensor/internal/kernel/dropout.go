package kernel

// Drop zeroes each x[i] with a probability and multiplies the others by keep. Number first+i of the row is dropped when its
// random word is below the threshold. Four words come from one Philox block, whose counter is the number divided by four
// and the row's three words.
func Drop[T Float](x []T, key uint64, row [3]uint32, first, threshold uint32, keep T) {
	for len(x) > 0 {
		words := Philox([4]uint32{first / 4, row[0], row[1], row[2]}, key)
		n := min(4-int(first%4), len(x))
		for i, w := range words[first%4:][:n] {
			if w < threshold {
				x[i] = 0
			} else {
				x[i] *= keep
			}
		}
		x, first = x[n:], first+uint32(n)
	}
}
