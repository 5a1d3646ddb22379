package flight

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Version is that of the file format.
const Version = 1

// Nobody is a rank that there is none of.
const Nobody = -1

// State is how far an operation has come on a rank.
type State string

// The states of an operation.
const (
	Started  State = "started"  // issued, and nobody waits for it
	Waiting  State = "waiting"  // the rank waits for it, or it failed
	Finished State = "finished" // over
)

// Record is a flight record: what ranks did last. Times are nanoseconds of one clock.
type Record struct {
	Version int    `json:"version"`
	Cause   string `json:"cause"`  // why it was written
	Blamed  int    `json:"blamed"` // the rank that failed first, as the engine says; Nobody for none
	Limit   int64  `json:"limit_ns"`
	Taken   int64  `json:"taken_ns"`
	Ranks   []Rank `json:"ranks"` // ascending
}

// Rank is one rank's part of a record.
type Rank struct {
	Rank       int         `json:"rank"`
	Left       bool        `json:"left"`       // it ended, well or badly
	Issued     int         `json:"issued"`     // operations ever
	Groups     []Group     `json:"groups"`     // by name
	Operations []Operation `json:"operations"` // the last ones, oldest first
}

// Group is what a rank has issued in one group.
type Group struct {
	Name        string `json:"name"`
	Ranks       []int  `json:"ranks"`       // of the world, by position
	Collectives int    `json:"collectives"` // ever
	Sent        []int  `json:"sent"`        // messages to each position
	Received    []int  `json:"received"`    // messages from each position
}

// Operation is one operation of a rank.
type Operation struct {
	Group  int    `json:"group"` // index in the rank's groups
	Op     string `json:"op"`    // all_reduce
	What   string `json:"what"`  // all-reduce sum of fp32[1024]
	Seq    int    `json:"seq"`   // from 1: of the group's collectives, or of the messages with the peer
	Peer   int    `json:"peer"`  // of a message: a rank of the world; else Nobody
	Bytes  int    `json:"bytes"`
	State  State  `json:"state"`
	Issued int64  `json:"issued_ns"`
	Since  int64  `json:"waiting_since_ns"` // when the rank began to wait for it; 0 when it did not
	Ended  int64  `json:"ended_ns"`         // 0 when it has not
	Site   string `json:"site"`             // who called it
}

// message tells whether the operation is between two ranks.
func (o *Operation) message() bool { return o.Peer != Nobody }

// Encode writes a record as JSON.
func Encode(r Record) ([]byte, error) {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return nil, fmt.Errorf("flight: %w", err)
	}
	return append(text, '\n'), nil
}

// Parse reads what Encode wrote. What the diagnosis relies on is checked, so that any record that it returns can be
// diagnosed.
func Parse(text []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, fmt.Errorf("flight: not a flight record: %w; give the file that a run wrote when it hung", err)
	}
	if r.Version != Version {
		return Record{}, fmt.Errorf("flight: a record of version %d; this program reads version %d", r.Version, Version)
	}
	var faults []error
	for i := range r.Ranks {
		if i > 0 && r.Ranks[i].Rank <= r.Ranks[i-1].Rank {
			faults = append(faults, fmt.Errorf("flight: ranks %d and %d are out of order", r.Ranks[i-1].Rank, r.Ranks[i].Rank))
		}
		if err := r.Ranks[i].check(); err != nil {
			faults = append(faults, fmt.Errorf("flight: rank %d: %w", r.Ranks[i].Rank, err))
		}
	}
	return r, errors.Join(faults...)
}

// check returns the first thing in a rank that cannot be.
func (k *Rank) check() error {
	if k.Rank < 0 || k.Issued < len(k.Operations) {
		return fmt.Errorf("%d operations issued, %d recorded", k.Issued, len(k.Operations))
	}
	for _, g := range k.Groups {
		n := len(g.Ranks)
		if !slices.Contains(g.Ranks, k.Rank) || len(g.Sent) != n || len(g.Received) != n {
			return fmt.Errorf("group %q of ranks %v is not one of this rank", g.Name, g.Ranks)
		}
	}
	for i, o := range k.Operations {
		if o.Group < 0 || o.Group >= len(k.Groups) {
			return fmt.Errorf("operation %d is of no group", i)
		}
		if o.message() && !slices.Contains(k.Groups[o.Group].Ranks, o.Peer) {
			return fmt.Errorf("operation %d has peer %d, which is not in group %q", i, o.Peer, k.Groups[o.Group].Name)
		}
	}
	return nil
}

// Merge joins records of disjoint ranks, such as processes write each for itself. The first that blames somebody, or
// else the first, says why.
func Merge(records ...Record) (Record, error) {
	if len(records) == 0 {
		return Record{}, errors.New("flight: no record; give at least one file")
	}
	merged := records[0]
	merged.Ranks = nil
	for _, r := range records {
		if merged.Blamed == Nobody && r.Blamed != Nobody {
			merged.Cause, merged.Blamed, merged.Limit = r.Cause, r.Blamed, r.Limit
		}
		merged.Ranks = append(merged.Ranks, r.Ranks...)
	}
	slices.SortFunc(merged.Ranks, func(a, b Rank) int { return a.Rank - b.Rank })
	for i := range merged.Ranks[min(1, len(merged.Ranks)):] {
		if merged.Ranks[i].Rank == merged.Ranks[i+1].Rank {
			return Record{}, fmt.Errorf("flight: two records of rank %d; give the files of one run", merged.Ranks[i].Rank)
		}
	}
	return merged, nil
}
