//go:build amd64 && !noasm

package kernel

import (
	"sync"
	"time"

	"golang.org/x/sys/cpu"
)

// Detect reads the features of this CPU that the operating system lets us use. All calls of a process return the same.
func Detect() Features { return detected() }

var detected = sync.OnceValue(detect)

func detect() Features {
	f := Features{
		AVX2: cpu.X86.HasAVX2 && cpu.X86.HasFMA,
		AVX512: cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW &&
			cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL,
	}
	f.BF16 = f.AVX512 && cpu.X86.HasAVX512BF16
	f.BF16Fast = f.BF16 && bf16Wins(f)
	return f
}

// bf16Wins tells whether bf16 pairs go clearly faster than fp32. The rates of known CPUs are a factor of two apart, one
// way or the other, and the fastest of some hundred bursts of a few microseconds is one that nothing disturbed: the
// answer is the same in every process.
func bf16Wins(f Features) bool {
	const budget, margin = time.Millisecond, 1.3
	p, ok := peakVector(f, budget)
	return ok && p.BF16 > margin*p.F32
}
