package main

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata/script")

// TestMain lets the test binary stand in for carve, so that scripts run the real program in its own process.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"carve": main})
}

// TestScript runs every script of testdata/script.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                commands(),
		Setup: func(e *testscript.Env) error {
			e.Setenv("CARVE_CACHE", filepath.Join(e.WorkDir, "cache"))
			return nil
		},
	})
}
