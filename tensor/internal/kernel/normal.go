package kernel

import "math"

// Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
const (
	philoxM0, philoxM1 = 0xD2511F53, 0xCD9E8D57
	philoxW0, philoxW1 = 0x9E3779B9, 0xBB67AE85
	philoxRounds       = 10
)

// Philox is the block of four random words that the generator makes of a counter and a key.
func Philox(counter [4]uint32, key uint64) [4]uint32 {
	k0, k1 := uint32(key), uint32(key>>32)
	c := counter
	for range philoxRounds {
		p0, p1 := uint64(c[0])*philoxM0, uint64(c[2])*philoxM1
		c = [4]uint32{uint32(p1>>32) ^ c[1] ^ k0, uint32(p1), uint32(p0>>32) ^ c[3] ^ k1, uint32(p0)}
		k0, k1 = k0+philoxW0, k1+philoxW1
	}
	return c
}

// Normals sets dst to std times the normal numbers first, first+1, … of the stream of key. Four numbers come from one
// Philox block, two from each pair of its words by Box and Muller's transform. Number n is the same on
// every machine up to the rounding of the math package.
func Normals[T Float](dst []T, key, first uint64, std float64) {
	for len(dst) > 0 {
		four := normals4(key, first/4)
		for lane := first % 4; lane < 4 && len(dst) > 0; lane++ {
			dst[0] = T(four[lane] * std)
			dst, first = dst[1:], first+1
		}
	}
}

// normals4 is the normal numbers of one block.
func normals4(key, block uint64) (n [4]float64) {
	w := Philox([4]uint32{uint32(block), uint32(block >> 32)}, key)
	n[0], n[1] = boxMuller(w[0], w[1])
	n[2], n[3] = boxMuller(w[2], w[3])
	return n
}

// boxMuller turns two uniform words into two independent normal numbers.
func boxMuller(a, b uint32) (x, y float64) {
	r := math.Sqrt(-2 * math.Log((float64(a)+0.5)/(1<<32)))
	sin, cos := math.Sincos(2 * math.Pi * (float64(b) + 0.5) / (1 << 32))
	return r * cos, r * sin
}
