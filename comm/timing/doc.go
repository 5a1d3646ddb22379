// Package timing measures collectives in the way of nccl-tests, on any engine.
//
// Sizes are those of the whole array: what every member has at the end of an all-gather, at the beginning of a
// reduce-scatter. The algorithm bandwidth is size / time, the bus bandwidth that times [comm.Op.BusFactor]. Every operation is
// first carried out once and each element of the result compared; then some rounds of barrier and operation are timed. The time of a
// round is that of the slowest rank from the barrier on, and the reported one is that of the middle round.
//
// [Fit] draws the line α + β·size through the times of an operation, with the residual.
package timing
