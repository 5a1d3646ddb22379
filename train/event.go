package train

import (
	"carve/nn"
	"carve/tensor"
	"carve/unit"
)

// Sink is told what happens in a run, by one goroutine, in order. It must not keep the run waiting.
type Sink interface{ Event(Event) }

// Event is one of [Preparing], [Text], [Started], [Step], [Validation], [Saved], [Warning] and [Summary].
type Event interface{ event() }

// Preparing tells how far the work on text is that is done once and kept in the cache. It comes many times a second.
type Preparing struct {
	What        string // "counting words", "learning the vocabulary", "encoding"
	Done, Total int64
	Path        string // of the text
	Bytes       unit.Bytes
}

// Text says what is trained on.
type Text struct {
	Path    string
	Files   int
	Bytes   unit.Bytes
	Skipped string // files left out, by reason
	Vocab   int
	Train   int64 // tokens
	Held    int64 // tokens of the validation split
	Elapsed unit.Seconds
}

// Started says what the run consists of; the first step follows.
type Started struct {
	Path       string // of the run
	Resumed    int    // steps that were done before; 0 for a new run
	Steps      int    // of the whole run, as far as it is known
	World      int    // ranks
	Threads    int    // per rank
	Parameters unit.Count
	StepTokens int // tokens of the global batch
	Memory     tensor.Usage
}

// Step is one step of the optimizer, seen from the whole world.
type Step struct {
	Step            int     // counted from 1
	Steps           int     // of the whole run
	Loss            float64 // mean over the step's tokens, in nats
	GradNorm        float64 // before clipping
	Rate            float64 // learning rate
	Tokens          int64   // since the run began
	Elapsed         unit.Seconds
	TokensPerSecond float64
	MFU             float64      // model FLOPs per second over the peak of the used cores; 0 when the peak is not known
	ExposedComm     unit.Seconds // mean over ranks of the time that communication kept them from computing
	DataWait        unit.Seconds // mean over ranks of the time spent waiting for data
	Memory          tensor.Usage // bytes in use at the peak, summed over ranks
	Remaining       unit.Seconds // estimate of the time to the end
}

// Experts is how evenly the experts of a step were loaded. The step's own event comes right after it.
type Experts struct {
	Step      int
	Imbalance float64 // largest load of an expert over the average, of the worst layer: 1 is even
	Straggler float64 // the same of the ranks of the expert axis, which wait for the slowest
	Dropped   int64   // choices that found no room
	Layers    []nn.ExpertLoad
}

// Validation is the loss on text that is not trained on.
type Validation struct {
	Step       int
	Loss       float64
	Perplexity float64 // e^Loss
	Tokens     int64
	Elapsed    unit.Seconds
}

// Saved is a checkpoint in place.
type Saved struct {
	Step    int
	Path    string
	Bytes   unit.Bytes
	Elapsed unit.Seconds // that training stood still
}

// Warning is something that did not stop the run and should be known.
type Warning struct{ Err error }

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	Completed   Outcome = "completed"
	Interrupted Outcome = "interrupted" // and saved
)

// Summary is the end of a run.
type Summary struct {
	Outcome         Outcome
	Steps           int // done since the run began
	FinalLoss       float64
	ValLoss         float64 // NaN when it was never measured
	Tokens          int64   // since the run began
	TokensPerSecond float64 // of this process, over its steps
	MFU             float64
	Elapsed         unit.Seconds // of this process, preparation and validation included
	World           int
	Peak            tensor.Usage // at the peak of each rank, summed over ranks
	Path            string
}

func (Preparing) event()  {}
func (Text) event()       {}
func (Started) event()    {}
func (Step) event()       {}
func (Experts) event()    {}
func (Validation) event() {}
func (Saved) event()      {}
func (Warning) event()    {}
func (Summary) event()    {}
