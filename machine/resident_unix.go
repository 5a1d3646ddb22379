//go:build unix

package machine

import (
	"runtime"
	"syscall"

	"carve/unit"
)

// PeakResident is the most memory that this process has had in use, as the system counts it; 0 when it does not.
func PeakResident() unit.Bytes {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return unit.Bytes(r.Maxrss)
	}
	return unit.Bytes(r.Maxrss) * unit.KiB
}
