package train

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
)

// metrics appends events to the run's metrics.jsonl, a line each, with one write per line: a crash loses at most
// the last line's end.
type metrics struct {
	file *os.File
	loss float64 // of the last step in the file; NaN when there is none
	val  float64 // of the last validation in the file; NaN when there is none
	err  error   // the first
}

// openMetrics opens the file at the state of a step: what a run that died later had written for later steps is cut
// off, so that no step is there twice.
func openMetrics(path string, step int) (*metrics, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	m := &metrics{file: f, loss: math.NaN(), val: math.NaN()}
	keep, err := m.upTo(step)
	if err == nil {
		err = f.Truncate(keep)
	}
	if err == nil {
		_, err = f.Seek(keep, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("train: %w", err), f.Close())
	}
	return m, nil
}

// upTo is the length of the lines of steps up to the given one; it remembers the last losses among them.
func (m *metrics) upTo(step int) (keep int64, err error) {
	lines := bufio.NewReader(m.file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return keep, nil
		}
		if err != nil {
			return 0, err
		}
		var at struct {
			Step *int     `json:"step"`
			Loss *float64 `json:"loss"`
			Val  *float64 `json:"val_loss"`
		}
		if json.Unmarshal(bytes.TrimSpace(line), &at) != nil || at.Step == nil || *at.Step > step {
			return keep, nil //nolint:nilerr // a line that does not parse is where a killed run stopped writing
		}
		keep += int64(len(line))
		if at.Loss != nil {
			m.loss = *at.Loss
		}
		if at.Val != nil {
			m.val = *at.Val
		}
	}
}

// Event implements [Sink].
func (m *metrics) Event(e Event) {
	switch e.(type) {
	case Step, Experts, Validation, Saved:
	default:
		return
	}
	line, ok := Encode(e)
	if !ok || m.err != nil {
		return
	}
	if _, err := m.file.Write(append(line, '\n')); err != nil {
		m.err = fmt.Errorf("train: %w; free some space", err)
	}
}

// close closes the file and returns the first error.
func (m *metrics) close() error {
	err := m.file.Close()
	if errors.Is(err, fs.ErrClosed) {
		err = nil
	}
	return errors.Join(m.err, err)
}
