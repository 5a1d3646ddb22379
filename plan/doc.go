// Package plan holds the decision that every other package executes: model × workload × cluster × layout.
//
// A Plan is one YAML file and one Go value. Parse reads the file strictly and fills in every default, so
// that a Plan is always whole; Encode writes it whole; Validate says, all at once, what rules it breaks
// and what would be legal instead; Notes says what is legal but worth knowing. Load is Parse and Validate.
//
// Symbols: B micro-batch (sequences), S sequence length, M micro-batches per step, A query heads,
// K key-value heads, L layers, E experts; DP, TP, PP, CP, EP the degrees of the axes.
//
//	world          = DP·TP·PP·CP·EP
//	data parallel  = DP·EP              samples are split over it (Megatron's data-parallel-size)
//	global batch   = B·M·DP·EP          sequences per optimizer step
//	tokens a step  = global batch · S
//	steps          = steps, or tokens / tokens a step, rounded up
//	chunks         = PP·virtual         pieces of the model that a schedule moves micro-batches through
//
// The package is pure: it is given the bytes of a plan, and a Source for the files that a plan names (a
// config.json, a cluster, the measurement of this machine). Data and tokenizers are named, not read.
//
// Invariants:
//   - Parse(Encode(p)) == p, and Encode of that gives the same bytes;
//   - a Plan from Load breaks no rule;
//   - Validate and Notes change nothing and depend on nothing but the Plan;
//   - whatever the bytes, Parse returns, and its error has at most document.MaxFaults lines and one.
package plan
