package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Pending is a checkpoint that is being written. Several ranks may hold one for the same folder and step: one
// calls Begin, then every rank writes its shards, then one commits what all of them wrote.
type Pending struct {
	root string // the run's folder of checkpoints
	step int
}

// New names the checkpoint of a step in the run's folder of checkpoints. It touches nothing.
func New(root string, step int) *Pending { return &Pending{root: root, step: step} }

// Path is where the checkpoint will be.
func (p *Pending) Path() string { return filepath.Join(p.root, stepName(p.step)) }

// staging is the folder that is written into.
func (p *Pending) staging() string { return filepath.Join(p.root, "."+stepName(p.step)+".partial") }

// stepName is the name of a step's folder; names sort as steps do up to 99,999,999.
func stepName(step int) string { return fmt.Sprintf("step-%08d", step) }

// Begin makes the empty folder to write into, in place of what a crash may have left.
func (p *Pending) Begin() error {
	if err := os.RemoveAll(p.staging()); err != nil {
		return writeError(err)
	}
	return writeError(os.MkdirAll(p.staging(), 0o755))
}

// WriteShard writes one rank's entries as the file kind-RANK.safetensors and returns what it holds, for
// Commit. An empty shard is no file.
func (p *Pending) WriteShard(kind string, rank int, entries []Entry) ([]Tensor, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	file := fmt.Sprintf("%s-%05d.safetensors", kind, rank)
	tensors, err := writeShard(p.staging(), file, entries)
	return tensors, writeError(err)
}

// Commit writes the manifest and puts the checkpoint in place. After an error nothing is in place; the
// caller calls Abort.
func (p *Pending) Commit(m *Manifest) error {
	for _, t := range m.Tensors {
		if err := checkCover(t); err != nil {
			return fmt.Errorf("checkpoint: tensor %q: %w", t.Name, err)
		}
	}
	text, err := m.encode()
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return writeError(p.commit(text))
}

func (p *Pending) commit(manifest []byte) error {
	if err := writeSynced(filepath.Join(p.staging(), manifestName), manifest); err != nil {
		return err
	}
	if err := syncFolder(p.staging()); err != nil {
		return err
	}
	if err := p.replace(); err != nil {
		return err
	}
	return syncFolder(p.root)
}

// replace renames the staging folder into place. A folder that is already there is the same step saved by
// a run that was resumed from before it, or a damaged one: it is moved away first.
func (p *Pending) replace() error {
	old := filepath.Join(p.root, "."+stepName(p.step)+".replaced")
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(p.Path(), old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(p.staging(), p.Path()); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// Abort removes what was written so far.
func (p *Pending) Abort() error { return writeError(os.RemoveAll(p.staging())) }

// writeSynced writes a file and waits until the disk has it.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncFolder waits until the disk has the names in a folder.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	return errors.Join(err, f.Close())
}
