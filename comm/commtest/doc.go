// Package commtest is the conformance suite of communication engines: what every [comm.Carrier] must do, whatever
// carries the bytes.
//
// A suite knows an engine by a function that makes worlds. Its checks are programs that every rank runs (SPMD) and
// that verify their results against a dumb twin: the inputs of all ranks follow from their positions, so
// that each rank can compute by plain loops what it must receive. Hence the suite also runs where each rank is a process
// of its own; there, all of them need the same -rapid.seed.
//
//	func TestConformance(t *testing.T) {
//		commtest.Run(t, commtest.Suite{New: func(n int) commtest.World { … }})
//	}
//
// [Fails] runs one check where it is expected to fail: the negative control of the suite.
package commtest
