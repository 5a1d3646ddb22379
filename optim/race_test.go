//go:build race

package optim_test

// racing shortens tests of arithmetic, which the race detector slows down thirtyfold, and leaves out the
// counting of allocations, which it makes itself.
const racing = true
