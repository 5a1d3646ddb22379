//go:build linux && !race

package tensor

import "golang.org/x/sys/unix"

// systemAlloc maps n zeroed bytes outside the garbage collector's heap and asks for huge pages, which
// spare the address translation of large matrices.
func systemAlloc(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // advice: where it is refused, small pages serve
	return b, nil
}

func systemFree(b []byte) { _ = unix.Munmap(b) }
