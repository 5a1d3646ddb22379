//go:build !amd64 || noasm

package kernel

// Detect finds no features: this build has portable kernels only.
func Detect() Features { return Features{} }

// pause is where other builds tell the core that it spins.
func pause() {}
