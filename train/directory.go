package train

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The files of a run's folder.
const (
	planFile       = "plan.yaml"
	metricsFile    = "metrics.jsonl"
	traceFile      = "trace.json"
	flightFile     = "flight.json"
	summaryFile    = "summary.json"
	tokenizerFile  = "tokenizer.json"
	checkpointsDir = "checkpoints"
	lockFile       = ".lock"
)

// Directory is a run's folder, held by this process alone until Close.
//
//	plan.yaml        the whole plan, every default written out
//	tokenizer.json   how text becomes tokens
//	metrics.jsonl    one line per step, validation and checkpoint
//	checkpoints/     see package checkpoint
//	trace.json       timed events of every rank, for Perfetto
//	flight.json      the last operations of every rank, after a rank failed or the run hung
//	summary.json     how the run ended
type Directory struct {
	Path string
	lock *lock
	made bool // by this process
}

// CreateDirectory makes the folder of a new run. A folder that exists must be empty.
func CreateDirectory(path string) (*Directory, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("train: cannot make the run folder: %w; choose another with --out", err)
	}
	d, err := lockDirectory(path)
	if err != nil {
		return nil, err
	}
	if err := d.mustBeEmpty(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.made = true
	return d, nil
}

// CreateNumbered makes the folder of a new run below root, named after base with the first number that is free:
// root/base-001.
func CreateNumbered(root, base string) (*Directory, error) {
	const most = 100_000
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("train: cannot make the folder of runs: %w; choose another with --out", err)
	}
	for n := 1; n < most; n++ {
		path := filepath.Join(root, fmt.Sprintf("%s-%03d", base, n))
		err := os.Mkdir(path, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("train: cannot make the run folder: %w; choose another with --out", err)
		}
		return CreateDirectory(path)
	}
	return nil, fmt.Errorf("train: %s holds %d runs named %s; choose another name with --out", root, most-1, base)
}

// OpenDirectory takes the folder of an earlier run, to resume it.
func OpenDirectory(path string) (*Directory, error) {
	if err := CheckRun(path); err != nil {
		return nil, err
	}
	return lockDirectory(path)
}

// CheckRun holds that a folder is that of a run.
func CheckRun(path string) error {
	_, err := os.Stat(filepath.Join(path, planFile))
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("train: cannot open the run: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("train: there is no run %s; %s", path, namesNearby(path))
	}
	if _, err := os.Stat(filepath.Join(path, checkpointsDir)); err == nil {
		return fmt.Errorf("train: %s has checkpoints but no %s; put the plan back as it was, from a copy of the run", path, planFile)
	}
	return fmt.Errorf("train: %s is not the folder of a run: it has no %s; %s", path, planFile, namesNearby(filepath.Join(path, "run")))
}

// namesNearby lists the runs in the folder where one was looked for.
func namesNearby(path string) string {
	const most = 5
	found, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*", planFile))
	if err != nil || len(found) == 0 {
		return "start one with carve train"
	}
	for i := range found {
		found[i] = filepath.Base(filepath.Dir(found[i]))
	}
	more := ""
	if n := len(found) - most; n > 0 {
		found, more = found[n:], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s has %s%s", filepath.Dir(path), strings.Join(found, ", "), more)
}

// lockDirectory takes the folder for this process.
func lockDirectory(path string) (*Directory, error) {
	l, err := takeLock(filepath.Join(path, lockFile))
	switch {
	case errors.Is(err, errLocked):
		return nil, fmt.Errorf("train: another process is running in %s; wait for it, or choose another folder with --out", path)
	case err != nil:
		return nil, fmt.Errorf("train: cannot write into the run folder: %w; choose another with --out", err)
	}
	return &Directory{Path: path, lock: l}, nil
}

// mustBeEmpty refuses a folder that holds anything but the lock.
func (d *Directory) mustBeEmpty() error {
	if _, err := os.Stat(d.file(metricsFile)); err == nil && CheckRun(d.Path) == nil { // a plan alone is no run
		return fmt.Errorf("train: %s holds a run; go on with --resume %s, or choose another folder with --out", d.Path, d.Path)
	}
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	for _, e := range entries {
		if e.Name() != lockFile {
			return fmt.Errorf("train: %s is not empty (%s); choose another folder with --out", d.Path, e.Name())
		}
	}
	return nil
}

// finished is the summary of a run that came to its end at a step, if the folder has it.
func (d *Directory) finished(step int) (Summary, bool) {
	text, err := os.ReadFile(d.file(summaryFile))
	if err != nil {
		return Summary{}, false
	}
	s, ok := decodeSummary(text)
	s.Path = d.Path
	return s, ok && s.Outcome == Completed && s.Steps == step
}

// discard removes the files of a new run that did not come to its first step.
func (d *Directory) discard() error {
	if !d.made {
		return nil
	}
	var faults []error
	for _, name := range []string{planFile, tokenizerFile, metricsFile} {
		if err := os.Remove(d.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			faults = append(faults, fmt.Errorf("train: %w", err))
		}
	}
	return errors.Join(faults...)
}

// Close gives the folder up. A new run that wrote nothing leaves no folder behind.
func (d *Directory) Close() error {
	if d.made && d.mustBeEmpty() == nil {
		_ = os.Remove(d.file(lockFile))
		_ = os.Remove(d.Path) // not ours to remove if something is in it now
	}
	return d.lock.release()
}

// file is the path of one of the run's files.
func (d *Directory) file(name string) string { return filepath.Join(d.Path, name) }

// Checkpoints is the folder of the run's checkpoints.
func (d *Directory) Checkpoints() string { return d.file(checkpointsDir) }

// write replaces a file of the run by a rename, so that a crash leaves the old or the new one.
func (d *Directory) write(name string, data []byte) error {
	temporary := d.file("." + name + ".new")
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temporary, d.file(name))
	}
	if err != nil {
		_ = os.Remove(temporary) // the error that counts is the first
		return fmt.Errorf("train: %w; the run's other files are untouched", err)
	}
	return nil
}
