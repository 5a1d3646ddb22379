//go:build !amd64 || noasm

package kernel

// Vector32 is the arithmetic on float32: this build has the portable one only.
func Vector32(Features) Vector[float32] { return portable[float32]{} }
