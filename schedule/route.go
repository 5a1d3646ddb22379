package schedule

import "fmt"

// Stage is a piece of the model on one pipe.
type Stage struct {
	Pipe  int // the way through a copy of the model
	Index int // 0 .. Depth-1, in model order
}

// Place is where a stage lives.
type Place struct{ Rank, Chunk int }

// Route answers, in constant time, where stages live and which are neighbours.
type Route struct {
	stages [][]Stage
	places [][]Place // [pipe][stage]
}

// Route builds the route of p. It is an error if a stage is held twice or not at all, or if pipes differ in depth.
func (p *Program) Route() (*Route, error) {
	count, pipes := 0, 0
	for _, chunks := range p.Stages {
		for _, s := range chunks {
			count++
			pipes = max(pipes, s.Pipe+1)
		}
	}
	if count == 0 || pipes > count || count%pipes != 0 {
		return nil, fmt.Errorf("schedule: %d chunks do not make %d pipes of equal depth; place every stage of every pipe once", count, pipes)
	}
	r := &Route{stages: p.Stages, places: make([][]Place, pipes)}
	for i := range r.places {
		r.places[i] = make([]Place, count/pipes)
		for j := range r.places[i] {
			r.places[i][j].Rank = -1
		}
	}
	for rank, chunks := range p.Stages {
		for chunk, s := range chunks {
			if s.Pipe < 0 || s.Index < 0 || s.Index >= r.Depth() || r.places[s.Pipe][s.Index].Rank >= 0 {
				return nil, fmt.Errorf("schedule: chunk %d of rank %d holds stage %d of pipe %d, which is out of range or held twice; place every stage of every pipe once",
					chunk, rank, s.Index, s.Pipe)
			}
			r.places[s.Pipe][s.Index] = Place{rank, chunk}
		}
	}
	return r, nil
}

// Depth returns the number of stages of a pipe: of pieces that the model is cut into.
func (r *Route) Depth() int { return len(r.places[0]) }

// Pipes returns the number of pipes.
func (r *Route) Pipes() int { return len(r.places) }

// Stage returns what a place holds.
func (r *Route) Stage(at Place) Stage { return r.stages[at.Rank][at.Chunk] }

// Place returns where a stage lives.
func (r *Route) Place(s Stage) Place { return r.places[s.Pipe][s.Index] }

// Previous returns where the stage before that of a place lives, and false for the first of the pipe. It may be
// another chunk of the same rank: then nothing is sent.
func (r *Route) Previous(at Place) (Place, bool) {
	s := r.Stage(at)
	if s.Index == 0 {
		return Place{}, false
	}
	return r.places[s.Pipe][s.Index-1], true
}

// Next returns where the stage after that of a place lives, and false for the last of the pipe. It may be another chunk
// of the same rank: then nothing is sent.
func (r *Route) Next(at Place) (Place, bool) {
	s := r.Stage(at)
	if s.Index == r.Depth()-1 {
		return Place{}, false
	}
	return r.places[s.Pipe][s.Index+1], true
}

// First tells whether a place holds the first stage of its pipe: the one that reads the tokens.
func (r *Route) First(at Place) bool { return r.Stage(at).Index == 0 }

// Last tells whether a place holds the last stage of its pipe: the one that computes the loss.
func (r *Route) Last(at Place) bool { return r.Stage(at).Index == r.Depth()-1 }
