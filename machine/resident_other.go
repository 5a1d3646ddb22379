//go:build !unix

package machine

import "carve/unit"

// PeakResident is the most memory that this process has had in use, as the system counts it; 0 when it does not.
func PeakResident() unit.Bytes { return 0 }
