package main

import "github.com/spf13/cobra"

func newTrace() *cobra.Command {
	return newGroup("trace", "Read what a run left: who held it up", newTraceHang())
}
