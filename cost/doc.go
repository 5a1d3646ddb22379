// Package cost says how long things take on a described machine: operations of a device, and collectives of a group.
//
// A [Machine] is a cluster (package cluster) with the [Constants] of its kind of device: a handful of fractions that say how
// much of its data sheet a device reaches. They are the same for every model, layout and run on that kind of device, and lie
// in one file, constants.json, each with its source and what it leaves unexplained. A device that the file does not name gets the file's
// "other" entry, and [Machine.Known] is false.
//
// # Symbols
//
// P peak rate of the dtype, W memory bandwidth, both of the data sheet; e fraction that is reached; U units of the device
// (streaming multiprocessors) over which tiles are dealt out.
//
// # Equations
//
//	product [M N K]  max( waves · 2·m·n·(K+k) / (e·P/U), bytes / (e·W) ) + launch, waves = ⌈⌈M/m⌉·⌈N/n⌉ / U⌉
//	                 the least over tiles m·n of 256·128 down to 64·64; a smaller tile is slower by a factor of its own. k stands
//	                 for what a tile takes to begin and to end, as if it had that much more depth
//	attention        FLOPs / (e·P) or bytes / (e·W), whichever is longer, + launch; forward and backward have fractions of their own
//	anything else    bytes / (e·W) + launch
//
// A group's collective of S bytes crosses tiers: on tier i, nᵢ members which differ there, of sᵢ members inside that each bring
// a share of the bytes; link αᵢ, βᵢ. Large operations go through all tiers at once, piece by piece, so the slowest tier counts, and
// the latencies add up:
//
//	Σ αᵢ·(steps of the algorithm with the fewest) + maxᵢ ( bytes that a link of tier i carries · βᵢ/e )
//
// For all-gather, reduce-scatter and all-reduce that is a ring around all members, of which each of the sᵢ cards side by side takes a share.
//
// The steps and bytes of an algorithm on one tier are those of package collective, which also runs them; an operation of a single
// tier is exactly its cost there with the constants' fraction of the bandwidth. Source of the pipelining over tiers: NCCL's
// rings and trees cross all links of a node at once (Jeaugey 2019, "Massively scale your deep learning training with NCCL
// 2.4"); measured on 4 nodes of B200, an all-reduce reaches 95 % of the rate of the eight network cards of a node.
//
// # Where it stops holding
//
// Congestion that others cause, in-network reduction, thermal throttling and the placement of operands in caches are not in
// it. A device's clock under load is part of e.
package cost
