package data

import "fmt"

// Stage is what a long call is doing.
type Stage int

const (
	// Counting reads text and counts words; Done and Total are bytes.
	Counting Stage = iota
	// Merging learns a vocabulary; Done and Total are merges.
	Merging
	// Encoding turns text into tokens; Done and Total are bytes.
	Encoding
)

// String names the stage.
func (s Stage) String() string {
	switch s {
	case Counting:
		return "counting words"
	case Merging:
		return "learning the vocabulary"
	case Encoding:
		return "encoding"
	}
	return fmt.Sprintf("stage(%d)", int(s))
}

// Progress is how far a stage is. It comes from one goroutine at a time, many
// times a second.
type Progress struct {
	Stage       Stage
	Done, Total int64
}
