//go:build race

package optim_test

import (
	"flag"
	"os"
	"testing"
)

// racing shortens tests of arithmetic, which the race detector slows down thirtyfold, and leaves out the
// counting of allocations, which it makes itself.
const racing = true

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.checks", "5"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
