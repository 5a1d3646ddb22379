package kernel

// Features are the instruction sets that the kernels may use on this machine.
// The zero value means portable Go. Clearing a field forbids its kernels.
type Features struct {
	AVX2   bool // AVX2, FMA and F16C
	AVX512 bool // AVX-512 F, BW, DQ, VL
	BF16   bool // VDPBF16PS
	// BF16Fast says that VDPBF16PS multiplies bf16 faster than expanding bf16
	// to fp32 and FMA does. Not every CPU that has the instruction gains by it:
	// one does twice the work in the time of an FMA, another half of it. So Detect
	// times both, once a process.
	BF16Fast bool
}
