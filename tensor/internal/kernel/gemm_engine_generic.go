//go:build !amd64 || noasm

package kernel

// newEngines has portable kernels only in this build.
func newEngines(Features) engines {
	return engines{f32: portable32(), f64: portable64()}
}
