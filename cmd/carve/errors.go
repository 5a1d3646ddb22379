package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"carve/internal/document"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes; doc.go says what each means.
const (
	exitDone        = 0
	exitFailed      = 1
	exitBadInput    = 2
	exitSaved       = 3
	exitInterrupted = 130
	exitUnread      = 141
)

// errSaved is the end of a run that was interrupted and saved; errStopped that of one that was not.
var (
	errSaved   = errors.New("interrupted, and saved")
	errStopped = errors.New("interrupted; nothing was saved")
)

// inputError marks what the user gave and can correct, as against what failed while it ran.
type inputError struct{ err error }

func (e *inputError) Error() string { return e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }

// badInput marks err as the user's to correct; nil stays nil.
func badInput(err error) error {
	if err == nil {
		return nil
	}
	return &inputError{err}
}

// exitCode maps the outcome of a verb to what a script sees.
func exitCode(err error) int {
	var input *inputError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errSaved):
		return exitSaved
	case errors.Is(err, errStopped):
		return exitInterrupted
	case errors.As(err, &input):
		return exitBadInput
	case errors.Is(err, syscall.EPIPE):
		return exitUnread
	}
	return exitFailed
}

// printError writes every fault of err on a line of its own.
func printError(w io.Writer, err error) {
	if exitCode(err) == exitUnread || err == nil { // who closed the pipe knows
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintln(w, "carve:", line)
		}
	}
}

// knownVerb refuses an argument where a verb is expected, and names the nearest verb.
func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var verbs []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			verbs = append(verbs, c.Name())
		}
	}
	return badInput(fmt.Errorf("%q is not a command of %q; %s", args[0], cmd.CommandPath(),
		remedy(args[0], verbs, fmt.Sprintf("see %q", cmd.CommandPath()+" --help"))))
}

// noArguments refuses arguments where a verb takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return badInput(fmt.Errorf("%q takes no argument, but was given %q; see %q",
		cmd.CommandPath(), args[0], cmd.CommandPath()+" --help"))
}

// flagError marks a flag that could not be parsed as bad input; an unknown one names the nearest.
func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 { // the flag is that of a verb that there is not
		return knownVerb(cmd, args)
	}
	help := fmt.Sprintf("see %q", cmd.CommandPath()+" --help")
	var (
		unknown *pflag.NotExistError
		invalid *pflag.InvalidValueError
		missing *pflag.ValueRequiredError
	)
	switch {
	case errors.As(err, &invalid):
		return badInput(fmt.Errorf("--%s %s; use %s", invalid.GetFlag().Name, document.Quote(document.Clip(invalid.GetValue())), wanted(invalid.GetFlag())))
	case errors.As(err, &missing):
		return badInput(fmt.Errorf("--%s has no value; use %s", missing.GetFlag().Name, wanted(missing.GetFlag())))
	case !errors.As(err, &unknown):
		return badInput(fmt.Errorf("%w; %s", err, help))
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	given := "--" + unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		given = "-" + unknown.GetSpecifiedName()
	}
	return badInput(fmt.Errorf("%q has no flag %s; %s", cmd.CommandPath(), given, remedy(given, names, help)))
}

// wanted says what a flag takes.
func wanted(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int":
		return "a whole number of at most 18 digits"
	case "uint64":
		return "a whole number from 0 to 18446744073709551615"
	case "float64":
		return "a number"
	case "duration":
		return "a length of time such as 90s, 10m or 1h30m"
	case "bool":
		return "true or false, or no value"
	}
	return "a text: " + f.Usage
}

// remedy proposes the word nearest to the given one, or else the other advice.
func remedy(given string, words []string, otherwise string) string {
	if word, ok := document.Nearest(given, words); ok {
		return fmt.Sprintf("did you mean %s?", word)
	}
	return otherwise
}
