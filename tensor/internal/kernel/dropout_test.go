package kernel

import "testing"

// TestPhilox has the known answers of the generator's authors (Random123, kat_vectors: philox 4x32, 10 rounds).
func TestPhilox(t *testing.T) {
	for _, c := range []struct {
		counter [4]uint32
		key     uint64
		want    [4]uint32
	}{
		{[4]uint32{}, 0, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1}, 1<<64 - 1, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			0x299f31d0_a4093822,
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := Philox(c.counter, c.key); got != c.want {
			t.Errorf("counter %x: %x, want %x", c.counter, got, c.want)
		}
	}
}

// TestDropFromAnyNumber holds a row taken in parts, from numbers within a block as well, to the row at once.
func TestDropFromAnyNumber(t *testing.T) {
	const n, first = 50, 6
	row := func() []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = 1
		}
		return x
	}
	whole := row()
	Drop(whole, 3, [3]uint32{1, 2, 3}, first, 1<<31, 2)
	for cut := range n + 1 {
		parts := row()
		Drop(parts[:cut], 3, [3]uint32{1, 2, 3}, first, 1<<31, 2)
		Drop(parts[cut:], 3, [3]uint32{1, 2, 3}, uint32(first+cut), 1<<31, 2)
		for i, v := range parts {
			if v != whole[i] {
				t.Fatalf("cut at %d: number %d is %v, want %v", cut, i, v, whole[i])
			}
		}
	}
}
