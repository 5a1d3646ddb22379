package cost

import (
	"math"

	"carve/unit"
)

// Product is a matrix product of [M K] and [K N] at a peak rate.
type Product struct {
	M, N, K float64
	Peak    unit.FLOPsPerSecond
}

// tile is a shape in which a product is computed, and the factor by which it falls short of the largest one.
type tile struct{ m, n, factor float64 }

// tiles are those that libraries choose from; factors after the arithmetic intensity of a tile, 2mn/(m+n), against shared
// memory.
var tiles = [...]tile{{256, 128, 1}, {128, 256, 1}, {128, 128, 0.96}, {128, 64, 0.85}, {64, 128, 0.85}, {64, 64, 0.7}}

// Product is the time of a matrix product that moves so many bytes.
func (m *Machine) Product(p Product, moved unit.Bytes) unit.Seconds {
	return max(m.arithmetic(p), m.Memory(moved)) + m.Constants.Launch
}

// arithmetic is the time of a product's multiplications.
func (m *Machine) arithmetic(p Product) unit.Seconds {
	c := m.Constants
	rate := c.MatMul * float64(p.Peak)
	if c.Units <= 1 {
		return unit.Seconds(2 * p.M * p.N * (p.K + c.Depth) / rate)
	}
	least := math.Inf(1)
	for _, t := range tiles {
		waves := math.Ceil(math.Ceil(p.M/t.m) * math.Ceil(p.N/t.n) / c.Units)
		least = min(least, waves*2*t.m*t.n*(p.K+c.Depth)/(rate*t.factor/c.Units))
	}
	// A part of the last wave's idle units is used by tiles cut along K, as libraries do where it pays.
	smooth := 2 * p.M * p.N * (p.K + 2*c.Depth) / (rate * 0.97)
	return unit.Seconds(max(min(least, smooth), 2*p.M*p.N*p.K/rate))
}

// Attention is the time of a block-wise attention kernel that reaches a fraction of a peak.
func (m *Machine) Attention(f unit.FLOPs, fraction float64, peak unit.FLOPsPerSecond, moved unit.Bytes) unit.Seconds {
	return max(unit.Seconds(float64(f)/(fraction*float64(peak))), m.Memory(moved)) + m.Constants.Launch
}

// Grouped is the time of several products of one size in one kernel that moves so many bytes: their tiles share the waves.
func (m *Machine) Grouped(count float64, p Product, moved unit.Bytes) unit.Seconds {
	if count <= 1 {
		return m.Product(p, moved)
	}
	if m.Constants.Units <= 1 {
		return max(m.arithmetic(p)*unit.Seconds(count), m.Memory(moved)) + m.Constants.Launch
	}
	// One after the other along the rows, each rounded up to whole tiles of 64.
	rows := math.Ceil(p.M/64) * 64
	p.M = rows * count
	return max(m.arithmetic(p), m.Memory(moved)) + m.Constants.Launch
}
