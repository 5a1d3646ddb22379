//go:build unix

package checkpoint

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fullRoot is the variable that turns the test binary into a process whose files cannot grow beyond 200 bytes,
// as on a full disk.
const fullRoot = "CARVE_TEST_FULL_DISK"

func TestMain(m *testing.M) {
	root := os.Getenv(fullRoot)
	if root == "" {
		os.Exit(m.Run())
	}
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 200, Max: 200}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(save(root, 2))
	os.Exit(0)
}

// TestFullDisk holds that a checkpoint that does not fit is one clear error and leaves the older one whole.
func TestFullDisk(t *testing.T) {
	root := t.TempDir()
	mustSave(t, root, 1)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), fullRoot+"="+root)
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "file too large; free some space or keep fewer checkpoints; the checkpoints already there are untouched") {
		t.Errorf("error: %s", out)
	}
	if refused := mustLatest(t, root, 1); refused != nil {
		t.Errorf("refused %v", refused)
	}
	if left, err := filepath.Glob(filepath.Join(root, ".*")); err != nil || left != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
