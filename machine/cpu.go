package machine

import (
	"runtime"
	"strings"

	"github.com/klauspost/cpuid/v2"
)

// CPU is a processor.
type CPU struct {
	Model    string   // the maker's name of it, or the architecture where there is none
	Features []string // the instruction sets that matter for carve, in a fixed order
	Cores    int      // physical cores, as far as the system shows them
	Threads  int      // hardware threads
	Usable   int      // threads that this process may use at once
	Cache    int      // bytes of the last-level cache; 0 when not known
}

// watched are the instruction sets that kernels use or may use.
var watched = [...]cpuid.FeatureID{
	cpuid.AVX2, cpuid.FMA3, cpuid.F16C,
	cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.AVX512BF16, cpuid.AVX512FP16, cpuid.AVX512VNNI,
	cpuid.AMXBF16, cpuid.AMXINT8,
	cpuid.ASIMD, cpuid.ASIMDDP, cpuid.SVE,
}

// ReadCPU describes the processor of this machine.
func ReadCPU() CPU {
	info := cpuid.CPU
	c := CPU{
		Model:   strings.TrimSpace(info.BrandName),
		Cores:   info.PhysicalCores,
		Threads: runtime.NumCPU(),
		Usable:  min(runtime.GOMAXPROCS(0), runtime.NumCPU()),
		Cache:   max(info.Cache.L3, info.Cache.L2, 0),
	}
	if c.Model == "" {
		c.Model = runtime.GOARCH
	}
	if c.Cores <= 0 || c.Cores > c.Threads {
		c.Cores = c.Threads
	}
	for _, f := range watched {
		if info.Supports(f) {
			c.Features = append(c.Features, strings.ToLower(f.String()))
		}
	}
	return c
}
