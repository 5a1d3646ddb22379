// Package optim owns the state of a model in training: where parameters, gradients and the optimizer's memory lie on the
// ranks, how gradients are summed, and how they become better parameters, by AdamW, Muon or SGD under a learning-rate
// schedule.
//
// A step of training:
//
//	state.Begin()
//	for each micro-batch but the last   model.Backward(r, model.Forward(r, b), nil)
//	for the last                        model.Backward(r, model.Forward(r, b), state)
//	state.Finish()                      those who keep a gradient now have the global batch's
//	norm := state.Norm()                the same number on every rank
//	state.Step(schedule.Rate(step), ClipScale(norm, limit))
//
// # Ownership
//
// The parameters of a unit that the same ranks hold are a block: the dense ones, which the ranks of DP×EP×CP hold, and
// its experts, which those of DP×CP hold. A block is cut into parts, and each part has one owner among those ranks: by
// ranges that are even to the element (the last rank has the remainder as well), by whole tensors, or one rank owns all
// (the parameter server). Everything follows from this one map: who keeps what, which collective brings sums to their
// owners and values back, who counts what in the norm, who writes what to a checkpoint.
//
//	stage           kept by each rank                    gradients       values
//	0               everything                           all-reduce      -
//	1               gradients and values of all,         reduce-scatter  all-gather after the update
//	                optimizer's memory of its own
//	2               values of all                        reduce-scatter  all-gather after the update
//	3               nothing but its own                  reduce-scatter  all-gather before every use
//	server          gradients and values of all          reduce          broadcast
//
// Bytes by parameter over N ranks, which tests hold (AdamW; bf16 keeps sums and masters in fp32):
//
//	stage   fp32           bf16
//	0       16             2 + 2 + 12
//	1       8 + 8/N        4 + 12/N
//	2       4 + 12/N       2 + 16/N
//	3       16/N           18/N
//
// Above that, stage 2 and 3 have the gradients of the unit whose backward runs and of those on their way to the
// owners (one, or two where there are sums over the tensor axis as well), and stage 3 the values of the unit that
// runs and of as many as are gathered ahead.
//
// # Sums
//
// The loss is scaled by 1/(valid targets of the global batch) before the backward, so gradients of ranks and
// micro-batches are terms of a sum: they are added, never averaged. At stages 0 and 1 accumulation only delays the one
// collective; from stage 2 on every micro-batch sends its gradients, because nobody has room for them. The sum of a
// gradient is made in this order, of which a layout uses what it has:
//
//	tensor axis     parameters whose terms its ranks have: norms under sequence parallelism, routers, copies of heads
//	data axes       to the owner
//	replicas        groups that shard the same, under hybrid sharding
//	pipeline axis   stages that hold the same unit: a tied table, every unit under DualPipe
//
// Each runs in another goroutine of the rank while the backward goes on, and takes the compute token between the layers.
//
// # Precision
//
// Under bf16 the owner keeps an fp32 master copy of a parameter and fp32 moments. A collective adds bf16 terms in
// fp32 and rounds the sum once; from stage 2 on micro-batches are added in fp32. Under fp32 and fp64 the parameter is
// the master.
//
// # Determinism
//
// Collectives add in rank order and sums of squares run in a fixed order, so two runs of one plan give the same
// bytes, and so do different buckets. Every rank of a group starts its collectives in the same order, because all
// run the same actions.
package optim
