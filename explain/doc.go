// Package explain says what a plan does with the model, the batch and the links: the four questions for every axis,
// the state graph, the communication graph, memory, pipeline and placement.
//
// Nothing here is a formula of its own: every number is counted on records of the plan's own program (package record), one
// for each of some coordinates of the pipeline, at the plan's full size. The four questions are
//
//  1. What is split?
//  2. What stays replicated?
//  3. Which collectives restore the single-device result: operation, calls, bytes, group, link?
//  4. Is that communication hidden behind computing, or exposed?
//
// # Words
//
// A call of a group's operation is hidden when the rank computes something between its start and the first wait for it,
// else exposed. That is what the program allows; whether there is enough to hide behind is a question of time, which
// a simulator answers.
//
// Bytes of a call are those of [comm.Call.Size]: the whole array of a gathering or scattering operation, the message of
// a send. Wire bytes are what the busiest link of the rank carries if the operation goes around a ring.
//
// A link is the innermost level of the cluster whose domain holds a whole group ([mesh.Span]); of all groups of a kind,
// the outermost.
//
// # JSON
//
// [Report] is what carve explain --json prints. Its keys are documented at the fields; bytes are numbers of bytes, keys
// are never removed.
package explain
