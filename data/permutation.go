package data

import "math/bits"

// permutation is a pseudo-random order of 0 … n-1 that takes no memory: a Feistel
// network over the smallest even number of bits that holds n, applied again and
// again until the result is below n (cycle walking; Black and Rogaway 2002,
// "Ciphers with arbitrary finite domains", section 4). Its domain has at most 4n
// values, so fewer than four applications are expected.
type permutation struct {
	n    uint64
	half uint
	keys [permutationRounds]uint64
}

const permutationRounds = 8

// newPermutation is the order of n ≥ 1 items in the given epoch.
func newPermutation(n uint64, seed, epoch uint64) permutation {
	width := max(bits.Len64(n-1), 2)
	p := permutation{n: n, half: uint(width+1) / 2}
	state := mix(seed) ^ mix(epoch+0x632be59bd9b4e019)
	for i := range p.keys {
		state += 0x9e3779b97f4a7c15
		p.keys[i] = mix(state)
	}
	return p
}

// at is the item in place i.
func (p *permutation) at(i uint64) uint64 {
	for {
		i = p.network(i)
		if i < p.n {
			return i
		}
	}
}

// network is a bijection of the numbers of 2·half bits.
func (p *permutation) network(i uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	left, right := i>>p.half, i&mask
	for _, key := range p.keys {
		left, right = right, left^mix(right^key)&mask
	}
	return left<<p.half | right
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable
// pseudorandom number generators"), a bijection that scatters every bit.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
