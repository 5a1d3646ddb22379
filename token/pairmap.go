package token

import "math/bits"

// pair is two neighbouring tokens, left in the upper half.
type pair uint64

func pairOf(left, right int32) pair { return pair(uint32(left))<<32 | pair(uint32(right)) }

func (p pair) left() int32  { return int32(p >> 32) }
func (p pair) right() int32 { return int32(uint32(p)) }

// pairMap maps pairs to small numbers by open addressing. Values are stored
// plus one, so that a zero value marks a free slot.
type pairMap struct {
	slots []pairSlot
	used  int
}

type pairSlot struct {
	key   pair
	value int32
}

func newPairMap(size int) pairMap {
	return pairMap{slots: make([]pairSlot, 1<<bits.Len(uint(max(2*size, 8)-1)))}
}

func (m *pairMap) slot(key pair) *pairSlot {
	mask := uint64(len(m.slots) - 1)
	hash := uint64(key) * 0x9e3779b97f4a7c15
	for at := (hash ^ hash>>32) & mask; ; at = (at + 1) & mask {
		s := &m.slots[at]
		if s.value == 0 || s.key == key {
			return s
		}
	}
}

// get is the value of key, or -1.
func (m *pairMap) get(key pair) int32 { return m.slot(key).value - 1 }

// put sets the value of a key that the map does not hold yet.
func (m *pairMap) put(key pair, value int32) {
	if 2*m.used >= len(m.slots) {
		m.grow()
	}
	*m.slot(key) = pairSlot{key, value + 1}
	m.used++
}

func (m *pairMap) grow() {
	old := m.slots
	m.slots = make([]pairSlot, 2*len(old))
	for _, s := range old {
		if s.value != 0 {
			*m.slot(s.key) = s
		}
	}
}
