// Package unit gives the quantities of carve a type each, so that bytes are never added to seconds.
//
// A quantity is a named number. Crossing from one to another is a method, never a bare division:
//
//	Bytes / BytesPerSecond   = Seconds          b.At(rate)
//	Bytes / Seconds          = BytesPerSecond   b.Per(time)
//	FLOPs / FLOPsPerSecond   = Seconds          f.At(rate)
//	FLOPs / Seconds          = FLOPsPerSecond   f.Per(time)
//
// Memory is counted in bytes and printed in powers of 1024 (GiB = 2^30); rates are printed in powers of
// 1000 (GB/s = 10^9 bytes per second, TFLOP/s = 10^12), as vendors and nccl-tests print them.
//
// Bytes and Count are integers and exact. FLOPs is a float64: a training run has up to 10^26 of them,
// beyond int64; below 2^53 (9·10^15, every per-token count) it is exact too.
//
// String is for people and rounds to three figures or so; Bytes.Exact and ParseBytes are for files and
// lose nothing.
package unit
