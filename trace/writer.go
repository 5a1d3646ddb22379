package trace

import (
	"errors"
	"io"
)

// Dialect is the spelling of categories and names in a file.
type Dialect uint8

const (
	// Perfetto is for people: categories and names as recorded.
	Perfetto Dialect = iota
	// Profiler is for analysers of PyTorch profiler traces: compute and communication are kernels.
	Profiler
)

// Writer writes the events of recorders as one Chrome trace.
type Writer struct {
	out     io.Writer
	dialect Dialect
	buf     []byte
	ranks   map[int]bool // processes that were announced
	lanes   map[int]int  // lanes that were announced, by rank
	started bool
	closed  bool
	err     error // the first of the output
}

var errClosed = errors.New("trace: the writer is closed")

// NewWriter makes a writer on out, which it does not close. Close completes the file.
func NewWriter(out io.Writer, d Dialect) *Writer {
	return &Writer{out: out, dialect: d, buf: make([]byte, 0, 1<<16), ranks: map[int]bool{}, lanes: map[int]int{}}
}

// Write appends the recorder's events and resets it. Events of one recorder are in the order of recording; the format
// needs no order between recorders.
func (w *Writer) Write(r *Recorder) error {
	if w.closed {
		return errClosed
	}
	w.announce(r)
	for i := range r.events {
		w.event(r, &r.events[i])
	}
	r.Reset()
	return w.flush()
}

// Close completes the file.
func (w *Writer) Close() error {
	if w.closed {
		return errClosed
	}
	w.begin()
	w.closed = true
	w.text("\n]}\n")
	return w.flush()
}

// WriteChrome writes a whole trace.
func WriteChrome(out io.Writer, d Dialect, recorders ...*Recorder) error {
	w := NewWriter(out, d)
	for _, r := range recorders {
		if err := w.Write(r); err != nil {
			return err
		}
	}
	return w.Close()
}

// begin writes the head of the file before the first event.
func (w *Writer) begin() {
	if w.started {
		return
	}
	w.started = true
	w.text(`{"displayTimeUnit":"ms","traceEvents":[`)
}

// line begins the line of an event.
func (w *Writer) line(phase string, pid int) {
	if !w.started {
		w.begin()
		w.text("\n")
	} else {
		w.text(",\n")
	}
	w.text(`{"ph":"`)
	w.text(phase)
	w.text(`","pid":`)
	w.int(int64(pid))
}

// announce names the rank and its lanes, as far as they are new.
func (w *Writer) announce(r *Recorder) {
	if !w.ranks[r.rank] {
		w.ranks[r.rank] = true
		w.metadata(r.rank, None, "process_name")
		w.text(`"name":"rank `)
		w.int(int64(r.rank))
		w.text(`"}}`)
		w.metadata(r.rank, None, "process_sort_index")
		w.text(`"sort_index":`)
		w.int(int64(r.rank))
		w.text(`}}`)
	}
	for i := w.lanes[r.rank]; i < len(r.lanes); i++ {
		w.metadata(r.rank, i, "thread_name")
		w.key("name")
		w.string(r.lanes[i])
		w.text(`}}`)
		w.metadata(r.rank, i, "thread_sort_index")
		w.text(`"sort_index":`)
		w.int(int64(i))
		w.text(`}}`)
	}
	w.lanes[r.rank] = len(r.lanes)
}

func (w *Writer) metadata(pid, tid int, name string) {
	w.line("M", pid)
	if tid != None {
		w.text(`,"tid":`)
		w.int(int64(tid))
	}
	w.text(`,"name":"`)
	w.text(name)
	w.text(`","args":{`)
}

// flush hands the buffer to the output.
func (w *Writer) flush() error {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.out.Write(w.buf)
	}
	w.buf = w.buf[:0]
	return w.err
}
