// Package optim turns gradients into better parameters: it sums them over the data-parallel ranks, clips them by
// their global norm, and applies AdamW, Muon or SGD under a learning-rate schedule.
//
// A step of training, after [nn.Model.Begin]:
//
//	for each micro-batch but the last   model.Backward(r, model.Forward(r, b), nil)
//	for the last                        model.Backward(r, model.Forward(r, b), reducer)
//	reducer.Finish()                    every rank now holds the global batch's gradient
//	norm := norm.Of()                   the same number on every rank
//	optimizer.Step(schedule.Rate(step), ClipScale(norm, limit))
//
// # Reduction
//
// The loss is scaled by 1/(valid targets of the global batch) before the backward, so gradients of ranks and
// micro-batches are terms of a sum: they are added, never averaged, and accumulation only delays the one collective. The
// [Reducer] starts a bucket's all-reduce when the backward has completed its units; the collective runs in
// another goroutine of the rank and takes the compute token between the layers of the backward.
//
// # Precision
//
// Under bf16 the optimizer keeps an fp32 master copy of every parameter and fp32 moments: 2 + 2 + 4 + 4 + 4 bytes per
// parameter. Under fp32 and fp64 the parameter is the master.
//
// # Determinism
//
// Collectives add in rank order and sums of squares run in a fixed order, so two runs of one plan give the same
// bytes, and so do different buckets.
package optim
