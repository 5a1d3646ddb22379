package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// List returns the steps that have a checkpoint in the run's folder of checkpoints, ascending, whole or not.
func List(root string) ([]int, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	var steps []int
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "step-")
		if step, err := strconv.Atoi(digits); ok && err == nil && stepName(step) == e.Name() {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// Latest opens the newest checkpoint that is whole to the last byte. It returns also why each newer one was
// refused, newest first. Without a whole one the error wraps ErrNone and every refusal.
func Latest(root string) (_ *Checkpoint, refused []error, _ error) {
	steps, err := List(root)
	if err != nil {
		return nil, nil, err
	}
	for _, step := range slices.Backward(steps) {
		c, err := openVerified(filepath.Join(root, stepName(step)))
		if err == nil {
			return c, refused, nil
		}
		refused = append(refused, err)
	}
	none := fmt.Errorf("%w that is whole in %s", ErrNone, root)
	return nil, refused, errors.Join(append([]error{none}, refused...)...)
}

// openVerified opens a checkpoint and checks every byte.
func openVerified(path string) (*Checkpoint, error) {
	c, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := c.Verify(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Retain removes older checkpoints so that keep of them are left, counted back from the one of the given
// step, which the caller has just written; and what crashes left behind. Checkpoints of later steps are of
// a future that this run has left, or damaged: they stay, and do not count.
func Retain(root string, step, keep int) error {
	steps, err := List(root)
	if err != nil {
		return err
	}
	if err := sweep(root); err != nil {
		return err
	}
	steps = slices.DeleteFunc(steps, func(s int) bool { return s > step })
	for _, old := range steps[:max(len(steps)-max(keep, 1), 0)] {
		if err := remove(root, stepName(old)); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes the hidden folders that crashes left behind.
func sweep(root string) error {
	for _, pattern := range []string{".step-*.partial", ".step-*.replaced", ".step-*.removed"} {
		left, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		for _, path := range left {
			if err := os.RemoveAll(path); err != nil {
				return writeError(err)
			}
		}
	}
	return nil
}

// remove hides a checkpoint by one rename and then deletes it, so that a crash leaves none that is partial.
func remove(root, name string) error {
	hidden := filepath.Join(root, "."+name+".removed")
	if err := os.Rename(filepath.Join(root, name), hidden); err != nil {
		return writeError(err)
	}
	return writeError(os.RemoveAll(hidden))
}
