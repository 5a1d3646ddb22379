// Package sim says how long a step takes: it executes the schedule's program on the ranks of a described cluster, with the
// operations that the engine itself performs and the seconds that package cost gives them.
//
// # What runs
//
// [Price] records the plan's program (package record) on one rank of a pipeline stage with as few micro-batches as show
// everything, and keeps what every kind of action consists of as [Item]s: stretches of computing, and collectives with how they
// are called. [Run] then walks the whole schedule, with all micro-batches, on every stage. Ranks that differ only in other
// coordinates do the same at the same time, so one of each stage stands for all: a cluster of 100,000 ranks costs no more than
// its stages.
//
// # Rules
//
//	compute token   a rank computes one thing at a time, in the order of its list
//	links           a rank has one port for each level of links; what uses a port waits until it is free
//	collectives     of one group run in the order of issue; a blocking one stops the rank, a started one goes on beside it
//	                until the rank waits for it; what several stages take part in begins when the last of them has come
//	messages        a send occupies the sender's port and not the rank; a receive waits for the arrival
//	pairs           the halves of a pair hide each other's communication: it takes the longer of computing and communicating
//
// Time that a rank stands still is exposed communication, by axis, as far as something is on its way, and bubble else: it waits
// for others to begin.
//
// # Where it stops holding
//
// Computing is not slowed down by communication beside it. Routers are even. What a [Straggler] delays is its own pipeline,
// which all others wait for at the end of the step.
package sim
