// Package cluster describes the machines that a plan runs on: one kind of device, and the links between
// devices as nested levels from the inside out.
//
// A level is a domain that holds Size devices (NVLink domain, node, rail, spine). Two devices talk over
// the innermost level whose domain holds both; moving n bytes between them takes α + n·β with α the
// level's Latency and 1/β its Bandwidth, which is per device and direction. Oversubscription says how many
// devices' worth of traffic shares one device's worth of uplink: 1 is full bisection bandwidth.
// Devices of a domain have consecutive ranks, so a level is a block of the rank grid (mesh.Span).
//
// What is a simplification: links of a torus (TPU) are summed and taken as one; the two-way limits of a
// device (PCIe, copy engines) are not there; α is that of one message between two devices, launch
// included, as derived from small collectives.
//
// Peaks are dense, without sparsity. Sustained is the best measured matrix product, where one is
// published; it is for comparison, never for pricing one run.
//
// A cluster comes from Preset (data/, every figure with its source), or from a file by Parse. The preset
// this-machine is such a file, written by a measurement, not by this package.
//
// Memory of accelerators is in GiB although data sheets say GB: an H100 of 80 GB has five stacks of
// 16 GiB, of which the driver shows about 79.6 GiB.
package cluster
