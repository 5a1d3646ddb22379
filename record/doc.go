// Package record runs a plan's training step on one rank without numbers and tells what the step consists of: the priced
// reading of a plan.
//
// [Run] is the engine of package parallel on the meta device and a meta endpoint. So a record is of the program that
// will run, not of a model of it: the same layers, schedule, reducers and optimizer, with the same tensors taken and given
// back in the same order. What a [Sink] hears, in the order in which the rank does it:
//
//	Compute      an operation of the device: kind, dims, FLOPs, bytes
//	Issue, Wait  an operation of a group: bytes, and how much was computed between the two
//	Took, Gave   a tensor with memory: category, bytes, owner
//
// each at a [Moment]: phase of the step, action of the schedule. A world has one record for each rank that behaves
// unlike others, at most; [Representatives] chooses those.
//
// Whatever depends on numbers is even: every expert gets as many rows as the others, a sequence is one document.
//
// Ledger, cost and simulator are built on records. Nobody writes a second formula for what a record can tell.
package record
