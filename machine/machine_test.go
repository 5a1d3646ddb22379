package machine

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"carve/unit"

	"github.com/google/go-cmp/cmp"
)

func TestParseMeminfo(t *testing.T) {
	cases := []struct {
		name, text       string
		total, available unit.Bytes
	}{
		{"usual", "MemTotal:       24637528 kB\nMemFree: 12 kB\nMemAvailable:   20000000 kB\n", 24637528 * unit.KiB, 20000000 * unit.KiB},
		{"empty", "", 0, 0},
		{"odd", "MemTotal:\nMemAvailable: many kB\nMemTotal: 99999999999999999999 kB\n", 0, 0},
	}
	for _, tc := range cases {
		total, available := parseMeminfo(strings.NewReader(tc.text))
		if total != tc.total || available != tc.available {
			t.Errorf("%s: %v, %v, want %v, %v", tc.name, total, available, tc.total, tc.available)
		}
	}
}

func TestParseChoiceAndLimit(t *testing.T) {
	for text, want := range map[string]string{"always [madvise] never\n": "madvise", "always": "", "[": ""} {
		if got := parseChoice(text); got != want {
			t.Errorf("choice of %q is %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]unit.Bytes{"max\n": 0, "1048576\n": unit.MiB, "": 0} {
		if got := parseLimit(text); got != want {
			t.Errorf("limit of %q is %v, want %v", text, got, want)
		}
	}
}

func TestReadHere(t *testing.T) {
	c := ReadCPU()
	if c.Model == "" || c.Cores < 1 || c.Threads < c.Cores || c.Usable < 1 || c.Usable > c.Threads {
		t.Errorf("processor %+v", c)
	}
	if m := ReadMemory(); runtime.GOOS == "linux" && (m.Total < 64*unit.MiB || m.Available > m.Total) {
		t.Errorf("memory %+v", m)
	}
}

const (
	openText  = "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n"
	mpichText = "HYDRA build details:\n    Version:                                 4.0.2\n    Release Date: x\n"
)

// TestFindMPI plants launchers and libraries and holds that each is found, and by its own implementation only.
func TestFindMPI(t *testing.T) {
	bin, lib := t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin)
	write := func(folder, name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := func(text string) string { return "#!/bin/sh\nPATH=/bin:/usr/bin\ncat <<'X'\n" + text + "X\n" }
	mine := func(all []MPI) []MPI { // what the machine has beside the planted ones is not of interest
		var planted []MPI
		for _, m := range all {
			if !strings.HasPrefix(m.Library, lib) {
				m.Library = ""
			}
			if m.Library != "" || m.Launcher != "" {
				planted = append(planted, m)
			}
		}
		return planted
	}
	if got := mine(FindMPI(t.Context(), lib)); got != nil {
		t.Errorf("found %+v where there is none", got)
	}
	library := write(lib, "libmpi.so.40", "")
	launcher := write(bin, "mpirun", script(openText))
	want := []MPI{{Name: "Open MPI", Version: "4.1.4", Library: library, Launcher: launcher}}
	if diff := cmp.Diff(want, mine(FindMPI(t.Context(), lib))); diff != "" {
		t.Errorf("Open MPI (-want +got):\n%s", diff)
	}
	launcher = write(bin, "mpirun.mpich", script(mpichText))
	want = append(want, MPI{Name: "MPICH", Version: "4.0.2", Launcher: launcher})
	if diff := cmp.Diff(want, mine(FindMPI(t.Context(), lib))); diff != "" {
		t.Errorf("both (-want +got):\n%s", diff)
	}
	write(bin, "mpirun", "#!/bin/sh\nexit 3\n")
	if got := mine(FindMPI(t.Context(), "")); len(got) != 1 || got[0].Name != "MPICH" {
		t.Errorf("a launcher that fails is taken: %+v", got)
	}
}
