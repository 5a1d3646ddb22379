// Package price is the closed form: the time and the memory of a training step from sizes alone, for a framework, in
// microseconds. Search ranks layouts by it, and it prices runs of engines that are not carve's.
//
// What can be recorded is better simulated (package sim) and accounted for (package ledger); a test holds this form near to both for
// carve's own engine. It exists for speed, and for models and frameworks that the engine does not run.
//
// # Equations
//
// With T = B·S/CP tokens of a micro-batch on a rank, a stage of n layers takes n·(f+b) for a micro-batch: f and b are sums over
// the products, attention, memory-bound kernels and exposed collectives of a block (package cost). The stage with the head has its
// product and loss besides. With stages t₁ … t_p of a pipeline and M micro-batches
//
//	step = (M-1)·max tᵢ + Σ tᵢ·fill + exposed DP + optimizer,   fill of the stages but the slowest: 1 for 1f1b and afab, 1/v interleaved
//
// Schedules that split the backward idle less, by the published formulas (package schedule). Communication of the data axis
// hides behind as much of the last backward and first forward as the framework overlaps; state sharding of parameters (stage 3)
// pays a gather for each unit and pass, hidden behind the unit before.
//
// Memory of a rank is states + activations of the micro-batches in flight + the largest of what is transient, on the first and
// on the last stage; bytes per parameter and what a block saves are the profile's.
//
// # Profiles
//
// A [Profile] says what a framework keeps and what it hides, with fitted fractions for its own overhead. Constants are per framework
// and per kind of device, never per run. profiles.json has them with their sources.
package price
