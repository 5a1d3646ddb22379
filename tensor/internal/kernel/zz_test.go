package kernel

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func cpuT() float64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return float64(ts.Nano()) * 1e-9
}
func TestZZPack(t *testing.T) {
	runtime.LockOSThread()
	e := avx512()
	dst := unsafe.Pointer(&make([]byte, 4<<20)[0])
	src := unsafe.Pointer(&make([]byte, 128<<20)[0])
	for i := range 32 << 20 {
		(*[32 << 20]float32)(src)[i] = float32(i)
	}
	run := func(name string, n int, f func()) {
		best := 1e9
		for range 6 {
			s := cpuT()
			f()
			best = min(best, cpuT()-s)
		}
		fmt.Printf("huge %-30s %.3f ns/elem %.1f GB/s\n", name, best*1e9/float64(n), float64(n)*4/best*1e-9)
	}
	for _, n := range []int{256, 768, 1376, 2048, 3072} {
		k := (32 << 20) / n / 1024 * 1024
		for _, w := range []int{32, 128, 512} {
			sk := source{p: src, ld: n * 4, size: 4, k: k, kMajor: true}
			run(fmt.Sprint("packB NN ", k, n, w), k*(n/w*w), func() {
				for k0 := 0; k0 < k; k0 += 1024 {
					for j := 0; j+w <= n; j += w {
						for u := k0; u < min(k, k0+1024); u += 64 {
							e.packB(unsafe.Add(dst, (u-k0)*128), oddLines(131072), &sk, u, u+64, j, min(n, j+w))
						}
					}
				}
			})
		}
	}
	x := (*[32 << 20]uint64)(src)[: 16<<20 : 16<<20]
	run("sum", 32<<20, func() {
		s := uint64(0)
		for i := 0; i+8 <= len(x); i += 8 {
			s += x[i]
		}
		x[0] = s
	})
	_ = k2
}

var k2 int
