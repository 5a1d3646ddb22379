package main

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"carve/cmd/carve/internal/terminal"
	"carve/tensor"
	"carve/train"
)

// liveShow draws the run in place.
type liveShow struct {
	now func() time.Time

	mu      sync.Mutex // guards what follows, and the screen
	block   terminal.Block
	drawn   time.Time
	started train.Started
	step    train.Step
	losses  []float64
	val     string
	saved   string
}

// frame is the least time between two drawings.
const frame = 100 * time.Millisecond

// Event implements [train.Sink].
func (s *liveShow) Event(e train.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case train.Warning:
		s.block.Print("carve: warning: " + e.Err.Error())
	case train.Preparing:
		s.draw(s.preparing(e))
	case train.Text:
		s.block.Print(textLine(e))
	case train.Started:
		s.started = e
		s.block.Print(startedLine(e))
		s.draw([]string{"measuring the first steps …"})
	case train.Step:
		s.step, s.losses = e, append(s.losses, e.Loss)
		s.refresh(e.Step == e.Steps)
	case train.Validation:
		s.val = fmt.Sprintf("   validation %.4f (perplexity %.1f) at step %d", e.Loss, e.Perplexity, e.Step)
		s.refresh(true)
	case train.Saved:
		s.saved = fmt.Sprintf("   saved at step %d", e.Step)
		s.refresh(true)
	case train.Summary:
	}
}

// refresh draws the block if it is time, or if it must be now.
func (s *liveShow) refresh(must bool) { //nolint:revive // whether a redraw can wait is all it asks
	if s.step.Step == 0 || !must && s.now().Sub(s.drawn) < frame {
		return
	}
	s.drawn = s.now()
	s.block.Draw(s.lines(s.block.Width())...)
}

// draw draws lines if it is time.
func (s *liveShow) draw(lines []string) {
	if s.now().Sub(s.drawn) < frame {
		return
	}
	s.drawn = s.now()
	s.block.Draw(lines...)
}

// preparing is the block while text is prepared.
func (s *liveShow) preparing(e train.Preparing) []string {
	part := float64(e.Done) / math.Max(float64(e.Total), 1)
	return []string{
		fmt.Sprintf("%s, %v (first time; kept for later runs)", e.Path, e.Bytes),
		fmt.Sprintf("%-24s %s %s", e.What, terminal.Bar(part, 30), percent(part)),
	}
}

// lines is the block while training.
func (s *liveShow) lines(width int) []string {
	e := s.step
	done := float64(e.Step) / float64(e.Steps)
	head := fmt.Sprintf("step %d/%d", e.Step, e.Steps)
	tail := fmt.Sprintf("%3.0f %%  %v left%s", 100*done, e.Remaining, s.saved)
	bar := terminal.Bar(done, max(10, min(40, width-len(head)-len(tail)-6)))
	return []string{
		fmt.Sprintf("%s  %s %s", head, bar, tail),
		fmt.Sprintf("loss      %.4f  %s%s", e.Loss, terminal.Curve(s.losses, max(10, min(40, width-70))), s.val),
		fmt.Sprintf("speed     %s tokens/s%s   step %v", terminal.Thousands(int64(e.TokensPerSecond)), utilisation("   MFU %s", e.MFU), e.Elapsed),
		fmt.Sprintf("gradient  norm %.3f   learning rate %.2e", e.GradNorm, e.Rate),
		fmt.Sprintf("waiting   communication %s   data %s", percent(float64(e.ExposedComm/e.Elapsed)), percent(float64(e.DataWait/e.Elapsed))),
		"memory    " + memoryLine(e.Memory),
	}
}

// memoryLine lists the categories that hold something.
func memoryLine(u tensor.Usage) string {
	parts := []string{u.Total().String()}
	for _, c := range tensor.Categories() {
		if b := u.Of(c); b > 0 {
			parts = append(parts, fmt.Sprintf("%v %v", c, b))
		}
	}
	return strings.Join(parts, "   ")
}

func (s *liveShow) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.block.Print("carve: " + line)
	s.refresh(true)
}

func (s *liveShow) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.block.Keep()
	return nil
}
