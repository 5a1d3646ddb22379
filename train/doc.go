// Package train runs a plan: it makes a world of ranks, each with its arena, device and share of the data, steps them
// through the plan's schedule, and keeps what must outlive the process.
//
// # A run
//
// [Run] starts one and [Resume] goes on with one, to the bit. A run lives in a [Directory]: plan.yaml (whole),
// metrics.jsonl, trace.json, tokenizer.json, checkpoints/ and summary.json. What happens is told to a sink as events; the
// package prints nothing.
//
// # Ranks
//
// Every rank is a goroutine that executes the same loop. What a decision rests on is the same on every rank, or comes from
// rank 0 over the board, a small exchange after every step. A rank that fails cancels the others, and the error names the
// rank, the step and the operation.
//
// The package executes decisions and makes none: it does not import search, cost or sim.
package train
