// Package collective is the algorithms of collective operations as data: rounds of messages, the proof that they
// deliver, what they cost, and links with queues on which they take their time.
//
// # Schedules
//
// A [Schedule] says who sends which blocks to whom, in rounds. The operand is cut into blocks, one for each member or one for
// all; a message carries all that its sender holds of some blocks, combined where the operation combines. A member begins a round when all
// its messages of the rounds before have arrived. [Schedule.Follow] proves what every member holds at the end.
//
// Most algorithms are spanning trees of messages, one for each block; run backwards they combine instead of spreading. So
// reduce, gather and reduce-scatter are broadcast, scatter and all-gather with time and arrows reversed, and an
// all-reduce is a reduce-scatter and an all-gather.
//
// # Costs
//
// A message of b bytes takes α + b·β; a device sends one at a time and receives one at a time, in both directions at once (Hockney
// 1994, as Thakur, Rabenseifner and Gropp 2005 use it). With n members, S bytes as nccl-tests counts them (the whole array), m = S/n, and L = ⌈log₂ n⌉:
//
//	algorithm      broadcast, reduce      gather, scatter    all-gather, reduce-scatter   all-reduce           all-to-all            barrier
//	direct         (n-1)(α+Sβ)            (n-1)(α+mβ)        (n-1)(α+mβ)                  2(n-1)(α+mβ)         (n-1)(α+mβ)           (n-1)α
//	ring           (L+n-1)α+2(n-1)mβ                         (n-1)(α+mβ)                  2(n-1)(α+mβ)
//	tree           L(α+Sβ)                Lα+(n-1)mβ         2Lα+((n-1)m+LS)β             2L(α+Sβ)                                   2Lα
//	doubling                                                 Lα+(n-1)mβ                   L(α+Sβ), n=2^L       Lα+mβ·Σ|bit k of d|   Lα
//	halving        2Lα+2(n-1)mβ                                                           2Lα+2(n-1)mβ
//	hierarchical   the sum over the levels of links, each with its own α and β
//
// Sources: ring all-reduce, Patarasuk and Yuan 2009; doubling of all-gather and all-to-all for any n, Bruck, Ho, Kipnis, Upfal and Weathersby
// 1997; halving (reduce-scatter then all-gather), Rabenseifner 2004; broadcast as scatter and all-gather, van de Geijn 1991; dissemination
// barrier, Hensgen, Finkel and Manber 1988; the comparison of all of them, Thakur et al. 2005.
//
// Several members may send out of one domain of links at once. When its uplink is oversubscribed by o, g members of a domain of s devices
// that send together each get the share s/(g·o) of their bandwidth, if that is below one.
//
// What the model leaves out: cost of combining elements, overlap of α with sending, adaptive routing, in-network reduction.
//
// # Links
//
// [Network] is a discrete-event simulation of a cluster's links: each device has a port out and a port in at each level, each domain an
// uplink and a downlink where those are oversubscribed. Messages queue for them in the order in which they become ready. It has
// no clock: the caller says what time it is.
package collective
