// Package parallel runs a plan's training step on one rank: the same recipe for every layout.
//
// An [Engine] is one rank's part of a job: its place on the mesh, its process groups, its stages of the model, its share
// of the optimizer's state, and the list of actions that the pipeline schedule gives it. [Engine.Step] is the whole
// recipe. What a layout changes is data to it: which positions of which samples a rank has, which groups sum what, which
// actions come in which order.
//
//	axis       split                         replicated             collective that restores one device's result
//	data       samples                       parameters             sum of the gradients (or reduce-scatter, all-gather: ZeRO)
//	tensor     heads, features, vocabulary   residual stream        all-reduce in every branch (or all-gather, reduce-scatter)
//	pipeline   layers                        nothing                activations and gradients are sent to the neighbours
//	context    positions                     parameters             keys and values travel in attention; sum of the gradients
//	expert     experts                       the rest of the model  all-to-all around the experts; sum of the gradients
//
// The caller fills [Engine.Tokens] and [Engine.Targets] with the samples of the rank's data share, whole sequences on
// every rank that shares them, and calls Step. The engine has no clock, no files and no log.
package parallel
