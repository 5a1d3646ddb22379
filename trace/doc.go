// Package trace is what happened: timed events and counters of ranks, and their file format.
//
// A [Recorder] belongs to one rank. It holds a bounded number of events in memory that was taken beforehand, so that recording
// costs no allocation and no lock; the runtime gives it readings of a clock, the simulator gives it simulated time. A
// [Writer] streams any number of recorders into one Chrome trace file, which Perfetto opens; it empties a recorder
// each time, so that a long run is written piece by piece.
//
// # Model
//
// Time is a [Tick]: nanoseconds from a start that all ranks share. A rank is a process of the trace, its lanes are threads. Spans
// of one lane do not overlap unless one lies within the other. Categories tell compute, communication, data and checkpoints apart.
// A collective's span carries what it moved ([Collective]) under the argument names of the PyTorch profiler, so
// that analysers of its traces compute bandwidths from ours; messages get flow arrows from sender to receiver.
//
// # File
//
//	{"displayTimeUnit":"ms","traceEvents":[
//	{"ph":"M","pid":0,"name":"process_name","args":{"name":"rank 0"}},
//	{"ph":"X","pid":0,"tid":1,"cat":"comm","name":"all-reduce","ts":12.500,"dur":3.250,"args":{…}},
//	…
//	]}
//
// One event per line; ts and dur are microseconds with the nanoseconds as decimals, exact. In the [Profiler] dialect, spans of compute and
// communication are in the category "kernel" and collectives are named "nccl:…", because that is what such
// analysers look for; they want one file per rank.
package trace
