package main

import "github.com/spf13/cobra"

func newBench() *cobra.Command {
	return newGroup("bench", "Measure this machine: kernels, communication, training", newBenchKernels(), newBenchComm(), newBenchTrain())
}
