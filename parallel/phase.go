package parallel

// Phase is what a rank does, for its timeline and for the error of what fails.
type Phase uint8

// The phases of a step.
const (
	Forward Phase = iota
	Backward
	WeightGradient // put off by the schedule
	Both           // a forward and a backward of two micro-batches at once
	Receiving      // waiting for a neighbouring stage
	Sending        // at the end of a step: the neighbours have not taken everything yet
	Reducing
	Norming
	Updating
)

// String is the name in errors and on the timeline.
func (p Phase) String() string {
	return [...]string{
		Forward: "forward", Backward: "backward", WeightGradient: "weight gradient", Both: "forward and backward", Receiving: "receive", Sending: "send",
		Reducing: "gradient reduction", Norming: "gradient norm", Updating: "optimizer",
	}[p]
}

// Communicates tells whether the phase is one of waiting for other ranks.
func (p Phase) Communicates() bool {
	return p == Receiving || p == Sending || p == Reducing
}
