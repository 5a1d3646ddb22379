// Program gemm writes the assembly of the matrix products: gemm_amd64.s and
// the declarations in gemm_amd64.go. Run it with go generate in the package
// that they belong to.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, t := range tiles {
		t.generate()
	}
	for _, v := range vectors {
		for _, f := range v.forms {
			v.panels(f)
			v.transpose(f)
		}
	}
	pause()
	peaks()
	Generate()
}

// pause tells the core that it spins.
func pause() {
	TEXT("pause", NOSPLIT, "func()")
	PAUSE()
	RET()
}
