// Package search finds the layout for a model, a cluster and a batch, and says why it is this one.
//
// [Find] enumerates tensor, context, expert, pipeline and data degrees, micro-batch, schedule and chunks, stage of state sharding and
// recomputation; drops what breaks a rule or does not fit the memory with its headroom; and prices the rest by the
// closed form of package price. Of layouts that are about as fast it takes the simplest: each step away from the simplest
// must pay for itself ([simplicity]).
//
// The explanation follows a fixed order: account for memory; lowest stage of state sharding that fits; data parallelism up to the global batch;
// tensor and sequence parallelism inside the fast domain; then pipeline; context only for long sequences, experts only where there
// are any. Every neighbour of the choice, one decision changed, is priced and has its reason with numbers.
package search
