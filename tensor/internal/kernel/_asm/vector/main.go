// Program vector writes the assembly of the loops on runs of numbers: vector_amd64.s and the declarations in
// vector_amd64.go. Run it with go generate in the package that they belong to.
package main

import (
	"slices"

	. "github.com/mmcloughlin/avo/build"
)

func main() {
	ConstraintExpr("amd64,!noasm")
	defineTable()
	for _, k := range slices.Concat(pointwise, sums, norms, activations, optimizers) {
		k.generate(avx2)
		k.generate(avx512)
	}
	for _, k := range panels {
		k.generate(avx2)
		k.generate(avx512)
	}
	for _, k := range reductions {
		k.generate(avx2)
		k.generate(avx512)
	}
	Generate()
}
