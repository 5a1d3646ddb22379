//go:build race

package train

// racing leaves most of the layouts out: the race detector slows arithmetic down thirtyfold, and a few are enough to look
// for races.
const racing = true
