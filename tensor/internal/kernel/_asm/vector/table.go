package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// geluSlope and geluCubic are those of the portable kernels.
const (
	geluSlope = 2 * 0.797884560802865355879892119868763736951717262329869315331851659
	geluCubic = 0.044715
)

// constants are kept in read-only data, each as a full vector of AVX2.
var constants = []struct {
	name  string
	value float64
}{
	{"one", 1},
	{"minusInf", math.Inf(-1)},
	{"lowest", -math.MaxFloat32},
	// exp: the range that is not 0 or Inf, 1/ln 2, ln 2 in two parts, and the minimax polynomial
	// 1 + r + e2·r² + … + e6·r⁶ of exp on ±ln 2/2, good to 2⁻²⁸ (found by Remez's exchange).
	{"expLow", -104},
	{"expHigh", 89},
	{"log2e", math.Log2E},
	{"ln2High", 0.693359375},
	{"ln2Low", math.Ln2 - 0.693359375},
	{"e2", 0.499999934125},
	{"e3", 0.166665201078},
	{"e4", 0.0416683942109},
	{"e5", 0.00836878041118},
	{"e6", 0.00138144670593},
	{"geluSlope", geluSlope},
	{"geluCurve", geluSlope * geluCubic},
	{"geluCurve3", 3 * geluSlope * geluCubic},
}

// integers are constants of 32 bits.
var integers = []struct {
	name  string
	value uint32
}{
	{"absolute", 0x7fffffff},
	{"infinite", 0x7f800000},
	{"unit", 1},
	{"roundHalf", 0x7fff},
	{"quiet", 0x40},
	{"exponentBias", 127},
}

const tableVector = 32 // bytes

var table = map[string]Mem{}

// defineTable writes the data.
func defineTable() {
	for _, c := range constants {
		define(c.name, math.Float32bits(float32(c.value)))
	}
	for _, c := range integers {
		define(c.name, c.value)
	}
	m := GLOBL("vectorMask", RODATA|NOPTR)
	for i := range 16 {
		v := uint32(0)
		if i < 8 {
			v = math.MaxUint32
		}
		DATA(4*i, U32(v))
	}
	table["mask"] = m
}

func define(name string, bits uint32) {
	m := GLOBL("vector"+string(name[0]-32)+name[1:], RODATA|NOPTR)
	for i := range tableVector / 4 {
		DATA(4*i, U32(bits))
	}
	table[name] = m
}

func constant(name string) Mem {
	m, ok := table[name]
	if !ok {
		panic(fmt.Sprintf("no constant %s", name))
	}
	return m
}

func maskTable() Mem { return table["mask"] }
