package main

import "github.com/spf13/cobra"

// completeWords makes a shell propose words for a flag.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag is not there: a slip in this program
	}
}

// completeFiles makes a shell propose files with the given endings for flags, or folders for those without an ending.
func completeFiles(cmd *cobra.Command, endings map[string][]string) {
	for flag, list := range endings {
		directive := cobra.ShellCompDirectiveFilterFileExt
		if list == nil {
			directive = cobra.ShellCompDirectiveFilterDirs
		}
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(list, directive)); err != nil {
			panic(err) // the flag is not there: a slip in this program
		}
	}
}
