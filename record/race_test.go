//go:build race

package record_test

// racing leaves out most of the layouts that are run: the race detector slows arithmetic down thirtyfold.
const racing = true
