package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

type versionOptions struct{ json bool }

// versionReport is what "carve version --json" prints.
type versionReport struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func newVersion() *cobra.Command {
	var o versionOptions
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of carve and of the Go that built it",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runVersion(cmd.OutOrStdout(), o)
		},
	}
	jsonFlag(cmd, &o.json)
	return cmd
}

func runVersion(out io.Writer, o versionOptions) error {
	r := readVersion()
	if o.json {
		return printJSON(out, r)
	}
	revision := ""
	if r.Revision != "" {
		revision = " " + r.Revision
	}
	if r.Modified {
		revision += " (modified)"
	}
	_, err := fmt.Fprintf(out, "carve %s%s %s %s/%s\n", r.Version, revision, r.Go, r.OS, r.Arch)
	return err
}

// readVersion reads what the Go tool stamped into this binary.
func readVersion() versionReport {
	r := versionReport{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	if info.Main.Version != "" {
		r.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Revision = s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			r.Modified = s.Value == "true"
		}
	}
	return r
}
