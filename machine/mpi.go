package machine

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// MPI is an installed implementation of MPI.
type MPI struct {
	Name     string // "Open MPI" or "MPICH"
	Version  string // empty when the launcher does not say
	Library  string // path of the shared library; empty when only the launcher is there
	Launcher string // path of mpirun; empty when only the library is there
}

// implementation is how one implementation of MPI is found.
type implementation struct {
	name      string
	libraries []string // file names, without what follows .so
	launchers []string
	version   *regexp.Regexp // of the first lines of launcher --version
}

// implementations are those that carve can drive. Intel MPI, MVAPICH and Cray's are MPICH in their binary
// interface.
var implementations = [...]implementation{
	{
		"Open MPI",
		[]string{"libmpi.so.40", "libmpi.so"},
		[]string{"mpirun.openmpi", "mpirun"},
		regexp.MustCompile(`\(Open(?: MPI|RTE)\) (\S+)`),
	},
	{
		"MPICH",
		[]string{"libmpich.so.12", "libmpi.so.12", "libmpich.so"},
		[]string{"mpirun.mpich", "mpirun", "mpiexec.hydra"},
		regexp.MustCompile(`HYDRA build details:\s*\n?\s*Version:\s+(\S+)`),
	},
}

// FindMPI looks for MPI libraries in the folders where distributions put them and in LD_LIBRARY_PATH's value
// libraryPath, and for launchers in the search path. It asks a launcher for its version and waits a few seconds
// at most.
func FindMPI(ctx context.Context, libraryPath string) []MPI {
	folders := append(filepath.SplitList(libraryPath), libraryFolders()...)
	var found []MPI
	for _, i := range implementations {
		m := MPI{Name: i.name, Library: findFile(folders, i.libraries)}
		m.Launcher, m.Version = i.launcher(ctx)
		if m.Library != "" || m.Launcher != "" {
			found = append(found, m)
		}
	}
	return found
}

// libraryFolders are the folders where Debian, Red Hat, SUSE, Homebrew and source builds put libmpi.
func libraryFolders() []string {
	triple := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	folders := []string{
		"/usr/lib/" + triple, "/usr/lib/" + triple + "/openmpi/lib",
		"/usr/lib64", "/usr/lib64/openmpi/lib", "/usr/lib64/mpich/lib",
		"/usr/lib64/mpi/gcc/openmpi4/lib64", "/usr/lib64/mpi/gcc/mpich/lib64",
		"/usr/local/lib", "/usr/lib", "/opt/homebrew/lib",
	}
	return slices.DeleteFunc(folders, func(f string) bool { return strings.HasPrefix(f, "/usr/lib//") || f == "/usr/lib/" })
}

// findFile returns the first of the names that exists in one of the folders.
func findFile(folders, names []string) string {
	for _, name := range names {
		for _, folder := range folders {
			if matches, err := filepath.Glob(filepath.Join(folder, name)); err == nil && len(matches) > 0 {
				return matches[0]
			}
		}
	}
	return ""
}

// launcher finds the launcher that says it belongs to the implementation.
func (i implementation) launcher(ctx context.Context) (path, version string) {
	for _, name := range i.launchers {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if version, ok := i.parseVersion(ask(ctx, path)); ok {
			return path, version
		}
	}
	return "", ""
}

// parseVersion reads the version from what a launcher prints, and tells whether it is of the implementation.
func (i implementation) parseVersion(text string) (version string, ok bool) {
	m := i.version.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// ask returns what a launcher prints about its version.
func ask(ctx context.Context, path string) string {
	const patience = 3 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return ""
	}
	return string(out)
}
