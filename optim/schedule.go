package optim

import (
	"fmt"
	"math"
)

// Shape is how the learning rate falls after warm-up.
type Shape uint8

// The shapes. WSD (warm-up, stable, decay: Hu et al., arXiv 2404.06395) stays at the peak and falls linearly in the
// last part of the run.
const (
	Cosine Shape = iota
	Linear
	Constant
	WSD
)

// String is the name in a plan.
func (s Shape) String() string {
	switch s {
	case Cosine:
		return "cosine"
	case Linear:
		return "linear"
	case Constant:
		return "constant"
	case WSD:
		return "wsd"
	}
	return fmt.Sprintf("shape(%d)", uint8(s))
}

// Schedule is the learning rate of every step.
type Schedule struct {
	Shape  Shape
	Peak   float64 // rate at the end of the warm-up
	Floor  float64 // rate after the last step, as a part of Peak
	Warmup int     // steps of linear rise: step 0 has Peak/Warmup, step Warmup-1 has Peak
	Steps  int     // of the run; later steps have the last one's rate
	Decay  int     // WSD: steps of the fall; 0 means a fifth of Steps
}

// Rate is the learning rate of a step, counted from 0.
func (s Schedule) Rate(step int) float64 {
	if step < s.Warmup {
		return s.Peak * float64(step+1) / float64(s.Warmup)
	}
	return s.Peak * (s.Floor + (1-s.Floor)*s.height(step))
}

// height is 1 at the first step of the fall and 0 after the last step of the run.
func (s Schedule) height(step int) float64 {
	switch s.Shape {
	case Constant:
		return 1
	case Cosine:
		return 0.5 * (1 + math.Cos(math.Pi*progress(step, s.Warmup, s.Steps)))
	case Linear:
		return 1 - progress(step, s.Warmup, s.Steps)
	case WSD:
		fall := s.Decay
		if fall == 0 {
			fall = s.Steps / 5
		}
		return 1 - progress(step, max(s.Warmup, s.Steps-fall), s.Steps)
	}
	return 1
}

// progress is how far a step is on the way from first to the end, from 0 to 1.
func progress(step, first, end int) float64 {
	if step >= end {
		return 1
	}
	return max(0, float64(step-first)/float64(end-first))
}
