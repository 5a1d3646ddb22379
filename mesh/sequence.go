package mesh

import "fmt"

// Balance says which positions of a sequence each coordinate of the context axis has.
type Balance uint8

// The balances.
const (
	// Zigzag cuts a sequence in 2·CP pieces; coordinate i has pieces i and 2·CP-1-i. Under a causal mask a piece costs
	// in proportion to its number, and the two numbers add up to the same everywhere.
	Zigzag Balance = iota
	// Contiguous cuts it in CP pieces; coordinate i has piece i. Under a causal mask the last one has nearly twice
	// the average work.
	Contiguous
)

// String returns "zigzag" or "contiguous".
func (b Balance) String() string {
	switch b {
	case Zigzag:
		return "zigzag"
	case Contiguous:
		return "contiguous"
	}
	return fmt.Sprintf("balance(%d)", uint8(b))
}

// Pieces returns the number of equal pieces that a sequence is cut in for a context degree. It must divide the length.
func (b Balance) Pieces(degree int) int {
	if b == Zigzag && degree > 1 {
		return 2 * degree
	}
	return degree
}

// Runs returns the positions of a sequence of length s that a coordinate has: one run or two, in ascending order; a
// second run that does not exist is empty. Pieces(degree) divides s.
func (b Balance) Runs(s, degree, coordinate int) [2]Range {
	pieces := b.Pieces(degree)
	runs := [2]Range{Split(s, pieces, coordinate)}
	if pieces > degree {
		runs[1] = Split(s, pieces, pieces-1-coordinate)
	}
	return runs
}

// Positions sets dst to the positions that a coordinate has, over and over until dst is full: those of a batch of
// sequences of length s without documents.
func (b Balance) Positions(dst []int32, s, degree, coordinate int) {
	at := 0
	for at < len(dst) {
		for _, run := range b.Runs(s, degree, coordinate) {
			for i := run.Start; i < run.Stop && at < len(dst); i++ {
				dst[at] = int32(i)
				at++
			}
		}
	}
}

// Cut copies what a coordinate has of sequences of length s from src [B S] to dst [B S/CP].
func (b Balance) Cut(dst, src []int32, s, degree, coordinate int) {
	for ; len(src) >= s && s > 0; src = src[s:] {
		for _, run := range b.Runs(s, degree, coordinate) {
			dst = dst[copy(dst, src[run.Start:run.Stop]):]
		}
	}
}
