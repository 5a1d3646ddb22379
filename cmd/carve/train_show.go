package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"carve/cmd/carve/internal/terminal"
	"carve/train"
)

// show is how a run is shown while it goes on.
type show interface {
	train.Sink
	// say shows a line that is no event.
	say(line string)
	// end leaves the screen in order, and returns why scripts did not get all that they should.
	end() error
}

// newShow chooses by where the output goes: JSON lines for scripts, a block that is drawn in place on a terminal, and
// lines now and then otherwise. Progress goes to standard error, JSON to standard output; when nobody reads that any more,
// stop is called.
func newShow(out, errOut io.Writer, json bool, stop func()) show { //nolint:revive // the flag of the command line
	if json {
		return &jsonShow{out: out, stop: stop, log: lineShow{out: errOut}}
	}
	if _, ok := terminal.Width(errOut); ok {
		width := func() int { columns, _ := terminal.Width(errOut); return columns }
		return &liveShow{block: terminal.Block{Writer: errOut, Width: width}, now: time.Now}
	}
	return &lineShow{out: errOut, now: time.Now, progress: true}
}

// jsonShow prints the events that scripts rely on: steps and the summary.
type jsonShow struct {
	out  io.Writer
	stop func()
	log  lineShow
	err  error // the first of writing
}

// Event implements [train.Sink].
func (s *jsonShow) Event(e train.Event) {
	switch e.(type) {
	case train.Step, train.Summary:
		if text, ok := train.Encode(e); ok && s.err == nil {
			if _, s.err = fmt.Fprintf(s.out, "%s\n", text); s.err != nil {
				s.stop()
			}
		}
	case train.Warning:
		s.log.Event(e)
	}
}

func (s *jsonShow) say(line string) { s.log.say(line) }

func (s *jsonShow) end() error {
	if s.err == nil {
		return nil
	}
	return fmt.Errorf("the run was stopped, and saved, because its output could not be written: %w", s.err) // not %w: this end has something to say even to a closed pipe
}

// lineShow writes lines: every step is too often for a log, so steps come some seconds apart.
type lineShow struct {
	out      io.Writer
	now      func() time.Time
	progress bool

	mu    sync.Mutex // guards what follows, and the output
	shown time.Time
	stage string
	val   string
}

// apart is the least time between two lines about steps.
const apart = 5 * time.Second

// Event implements [train.Sink].
func (s *lineShow) Event(e train.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case train.Warning:
		fmt.Fprintln(s.out, "carve: warning:", e.Err)
	case train.Preparing:
		if e.What != s.stage {
			s.stage = e.What
			fmt.Fprintf(s.out, "%s: %s of %s (first time; kept for later runs)\n", e.What, e.Bytes, e.Path)
		}
	case train.Text:
		fmt.Fprintln(s.out, textLine(e))
	case train.Started:
		fmt.Fprintln(s.out, startedLine(e))
	case train.Step:
		s.step(e)
	case train.Validation:
		s.val = fmt.Sprintf("  val_loss %.4f", e.Loss)
		fmt.Fprintf(s.out, "step %d  validation loss %.4f  perplexity %.1f\n", e.Step, e.Loss, e.Perplexity)
	case train.Saved:
		fmt.Fprintf(s.out, "step %d  checkpoint %s  %v in %v\n", e.Step, e.Path, e.Bytes, e.Elapsed)
	case train.Summary:
	}
}

// step writes a line for the first and last step and for those in between that are far enough apart.
func (s *lineShow) step(e train.Step) {
	now := s.now()
	if e.Step != e.Steps && now.Sub(s.shown) < apart {
		return
	}
	s.shown = now
	fmt.Fprintf(s.out, "step %d/%d  loss %.4f%s  %s tokens/s  %sgrad norm %.2f  exposed comm %s  data wait %s  left %v\n",
		e.Step, e.Steps, e.Loss, s.val, terminal.Thousands(int64(e.TokensPerSecond)), utilisation("mfu %s  ", e.MFU), e.GradNorm,
		percent(float64(e.ExposedComm/e.Elapsed)), percent(float64(e.DataWait/e.Elapsed)), e.Remaining)
}

func (s *lineShow) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.out, "carve:", line)
}

func (s *lineShow) end() error { return nil }

// textLine says what is trained on.
func textLine(e train.Text) string {
	return fmt.Sprintf("text: %s, %s files, %s bytes: %s tokens to learn, %s held back, vocabulary %s",
		e.Path, terminal.Thousands(int64(e.Files)), terminal.Thousands(int64(e.Bytes)), terminal.Thousands(e.Train),
		terminal.Thousands(e.Held), terminal.Thousands(int64(e.Vocab)))
}

// startedLine says what the run consists of.
func startedLine(e train.Started) string {
	from := ""
	if e.Resumed > 0 {
		from = fmt.Sprintf(", resumed after step %d", e.Resumed)
	}
	return fmt.Sprintf("run: %s, %v parameters, %s of %s, %s tokens a step%s",
		e.Path, e.Parameters, plural(e.World, "rank"), plural(e.Threads, "thread"), terminal.Thousands(int64(e.StepTokens)), from)
}

// plural is "1 rank" or "2 ranks".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// percent is a part as "12.3 %".
func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

// utilisation formats the MFU, or is empty when the peak is not known.
func utilisation(format string, mfu float64) string {
	if mfu <= 0 {
		return ""
	}
	return fmt.Sprintf(format, percent(mfu))
}
