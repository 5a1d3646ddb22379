//go:build amd64 && !noasm

package kernel

import "golang.org/x/sys/cpu"

// Detect reads the features of this CPU that the operating system lets us use.
func Detect() Features {
	f := Features{
		AVX2: cpu.X86.HasAVX2 && cpu.X86.HasFMA,
		AVX512: cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW &&
			cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL,
	}
	f.BF16 = f.AVX512 && cpu.X86.HasAVX512BF16
	return f
}
