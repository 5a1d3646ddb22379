// Package ledger accounts for the memory of a plan: every byte that is in use at the peak of every pipeline stage, by
// category, dtype, shape, module, lifetime and number of copies.
//
// A [Ledger] is counted, not calculated: a stage's account is what a record of its program (package record) had taken and
// not given back at the moment when the most was in use. So the sum of its lines is the peak that a run measures, to the
// byte, and a test holds that for a grid of layouts.
//
// # Words
//
// A lifetime is from the moment when a tensor is taken to the one when it is given back:
//
//	run                  from before the first step to after the last
//	forward to backward  kept for the backward pass: what micro-batches in flight multiply
//	between actions      from one action of the schedule to a later one: messages, gradients that are being reduced
//	transient            within one action
//
// Copies are the ranks of the world that hold the same part of a state: 1 means that nothing is held twice. The mean over
// a stage's parameters is taken, weighted by size.
//
// What is not here: what other processes, the runtime and the binary itself need.
package ledger
