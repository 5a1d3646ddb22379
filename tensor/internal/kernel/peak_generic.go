//go:build !amd64 || noasm

package kernel

import "time"

// peakVector has no loops in this build.
func peakVector(Features, time.Duration) (Peak, bool) { return Peak{}, false }
