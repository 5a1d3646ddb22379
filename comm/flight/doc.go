// Package flight is the flight record of a world of ranks, and the search for who is to blame when it hangs.
//
// A [Record] holds, for every rank, its last operations and how many it has issued in each group. It is plain data: a
// watchdog takes it, a file keeps it, [Diagnose] reads it.
//
// # Who is to blame
//
// A rank waits for another when an operation that it waits for lacks the other's part. Those edges form a graph:
//
//   - a rank that others wait for and that waits for nobody holds everybody up: it sleeps, computes, or is gone;
//   - without one, ranks wait in a circle, because somebody called operations in another order. In a program that is the
//     same on all ranks that is the one whose sequence of calls differs from what most ranks called at the same
//     place; where that tells nothing, the one that most ranks wait for.
//
// Members that called different operations under one number of a group are a mismatch, and the blame goes to those that
// differ from most ranks in the same way. Two ranks that disagree, with no third to compare with, cannot be told apart:
// then the engine's word counts, or the first of them.
//
// The operation that a culprit missed is the one that others wait for it in; of several the one that most ranks called at
// the place where the culprit stopped, then the one that the fewest ranks miss, then the oldest.
package flight
