package explain

import "carve/unit"

// Report is a plan explained.
type Report struct {
	Model      string     `json:"model"`
	Parameters unit.Count `json:"parameters"`
	Precision  string     `json:"precision"`
	World      int        `json:"world"`
	Layout     string     `json:"layout"`   // degrees above 1
	Order      string     `json:"order"`    // axes from the fastest rank digit to the slowest
	Cluster    string     `json:"cluster"`  // name
	Sequence   int        `json:"sequence"` // tokens
	Batch      int        `json:"global_batch"`
	Micro      int        `json:"micro_batches"` // of a step, on each rank
	Recorded   []int      `json:"recorded"`      // ranks that were recorded: one for each of some pipeline coordinates

	Axes     []Axis    `json:"axes"` // degree above 1
	State    []State   `json:"state"`
	Flows    []Flow    `json:"communication"`
	Memory   []Memory  `json:"memory"` // of the recorded ranks
	Device   Device    `json:"device"`
	Pipeline *Pipeline `json:"pipeline,omitempty"` // with more than one stage
	Topology Topology  `json:"topology"`
	Warnings []string  `json:"warnings"`
}

// Axis is one axis and the answers to the four questions.
type Axis struct {
	Name       string   `json:"axis"` // dp, tp, pp, cp, ep
	Noun       string   `json:"noun"`
	Degree     int      `json:"degree"`
	Split      []string `json:"split"`
	Replicated []string `json:"replicated"`
	// Rank is the recorded rank that moves the most over groups that go along this axis, perhaps with others. Restores are its
	// flows over them, modules merged; Calls and Bytes their sums, of a step.
	Rank        int        `json:"rank"`
	Restores    []Flow     `json:"restores"`
	Calls       int        `json:"calls"`
	Bytes       unit.Bytes `json:"bytes"`
	WireBytes   unit.Bytes `json:"wire_bytes"`
	HiddenBytes unit.Bytes `json:"hidden_bytes"`
	Link        Link       `json:"link"`  // the slowest that the axis crosses
	Group       []int      `json:"group"` // rank 0's, at most the first eight
}

// Link is a level of the cluster.
type Link struct {
	Name      string              `json:"name"` // empty when the cluster is not known
	Bandwidth unit.BytesPerSecond `json:"bytes_per_second"`
	Level     int                 `json:"level"` // from 0, the innermost
}

// Flow is one kind of communication of a step: an operation of a group at a place in the program.
type Flow struct {
	Group string   `json:"group"` // name in the program
	Axes  []string `json:"axes"`  // that its members differ on
	Size  int      `json:"size"`  // members
	Ranks []int    `json:"ranks"` // of the first recorded rank that has it, at most the first eight
	Op    string   `json:"op"`
	DType string   `json:"dtype"`
	// Phase of the step in which it is issued; "pipeline" for messages between stages. Module is the layers' name with * for
	// numbers, of what layers send; empty of what the step sends around them.
	Phase  string `json:"phase"`
	Module string `json:"module"`
	// Calls, Bytes and WireBytes are of a step, on the recorded rank that moves the most.
	Calls     int        `json:"calls"`
	Bytes     unit.Bytes `json:"bytes"`
	WireBytes unit.Bytes `json:"wire_bytes"`
	// Least and Most are the bytes of one call.
	Least unit.Bytes `json:"least_bytes_per_call"`
	Most  unit.Bytes `json:"most_bytes_per_call"`
	// HiddenCalls and HiddenBytes are those with computing between start and wait.
	HiddenCalls int        `json:"hidden_calls"`
	HiddenBytes unit.Bytes `json:"hidden_bytes"`
	Stages      []int      `json:"stages"` // recorded pipeline coordinates that have it
	Link        Link       `json:"link"`
}

// State is one class of tensors.
type State struct {
	Kind        string     `json:"kind"` // parameter, gradient, optimizer, activation, communication, workspace
	Name        string     `json:"name"` // with * for numbers
	DType       string     `json:"dtype"`
	Shape       []int      `json:"shape"` // global where Split is known, else of the rank
	Local       []int      `json:"local"` // of the rank; empty where the rank has a range of the flat tensors
	Split       string     `json:"split"`
	Replication int        `json:"replication"` // ranks that hold the same part; 0 where that is not known
	Count       int        `json:"count"`       // tensors of a rank at once
	Bytes       unit.Bytes `json:"bytes"`       // of a rank at once, on the recorded rank that has the most
	Lifetime    string     `json:"lifetime"`
}

// Memory is the peak of one recorded rank.
type Memory struct {
	Rank       int                   `json:"rank"`
	Stage      int                   `json:"stage"` // pipeline coordinate
	Total      unit.Bytes            `json:"total"`
	Categories map[string]unit.Bytes `json:"categories"` // at the moment of the peak
	Owner      string                `json:"owner"`      // module that ran then
	Phase      string                `json:"phase"`
}

// Device is what a rank runs on.
type Device struct {
	Name   string     `json:"name"` // empty when the cluster is not known
	Memory unit.Bytes `json:"memory"`
}

// Pipeline is the schedule.
type Pipeline struct {
	Schedule     string  `json:"schedule"`
	Ranks        int     `json:"ranks"`
	Chunks       int     `json:"chunks"` // of the model in all
	Micro        int     `json:"micro_batches"`
	Layers       []int   `json:"layers"`          // of every chunk in model order
	Bubble       float64 `json:"bubble_fraction"` // with F = I = W, B = I + W
	PeakInFlight []int   `json:"peak_in_flight"`  // micro-batches, of every rank
	Actions      int     `json:"actions"`         // of all ranks
	Grid         string  `json:"grid,omitempty"`  // drawn, where it is small

	drawing string // the grid as SVG
}

// Topology is the ranks on the devices.
type Topology struct {
	Nodes   int    `json:"nodes"` // that have ranks
	PerNode int    `json:"devices_per_node"`
	Idle    int    `json:"idle_devices"`
	Levels  []Tier `json:"levels"`
	Shown   []Node `json:"shown"`
}

// Tier is a level of links.
type Tier struct {
	Link
	Size int      `json:"size"` // devices of a domain
	Axes []string `json:"axes"` // that cross it at the most
}

// Node is the ranks of one node.
type Node struct {
	Index int    `json:"node"`
	Ranks []Seat `json:"ranks"`
}

// Seat is a rank and its coordinates on the axes above 1.
type Seat struct {
	Rank        int            `json:"rank"`
	Coordinates map[string]int `json:"coordinates"`
}
