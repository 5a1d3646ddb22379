// Command bench races carve against other programs that do the same work, on the same cores in the same run.
//
//	go run ./bench [flags] train gemm
//
// A comparison has contenders of two sides, theirs and ours. Round r runs every contender once before round r+1 begins, so that a slow
// minute of a shared machine hits all of them; what is quoted is the ratio of medians over the rounds, with the lowest and the
// highest ratio of one round. A peer is tuned first and raced at its best (see docs/decisions/006-benchmarks.md).
//
// The peers are programs of their own under peers/: PyTorch through Debian's python3-torch, OpenBLAS and oneDNN through a C program that is
// compiled here. carve is the built binary and is asked through its command line, so that what is measured is what a user runs.
// This command imports nothing of carve.
//
// A measure that is added later is one file: a function that returns comparisons, and its line in main's table.
package main
