package price

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

//go:embed profiles.json
var profilesFile []byte

// Profile is what a framework keeps and hides. Bytes are per parameter.
type Profile struct {
	Name             string  `json:"name"`
	Parameter        float64 `json:"parameter"`
	Gradient         float64 `json:"gradient"`
	Optimizer        float64 `json:"optimizer"` // moments and master weights
	ShardedParameter float64 `json:"sharded_parameter"`
	GatheredUnits    float64 `json:"gathered_units"` // whole blocks in use at once, at stage 3
	ReduceBytes      float64 `json:"reduce_bytes"`   // of an element that is reduced
	GatherBytes      float64 `json:"gather_bytes"`   // of an element that is gathered
	EveryMicro       bool    `json:"every_micro"`    // gradients are reduced for every micro-batch, at stage 3
	Overlap          float64 `json:"overlap"`        // part of computing that hides communication of the data axis
	HiddenTP         float64 `json:"hidden_tp"`      // parts of communication that other work hides
	HiddenPP         float64 `json:"hidden_pp"`
	HiddenEP         float64 `json:"hidden_ep"`
	Kernel           float64 `json:"kernel"`     // times of products, by the device's constants
	Attention        float64 `json:"attention"`  // times of attention, by the device's constants
	Fusion           float64 `json:"fusion"`     // times of memory-bound work, by a block's own bytes
	Host             float64 `json:"host"`       // seconds in which the host issues a block's forward
	HostTP           float64 `json:"host_tp"`    // and so much more where collectives of the tensor axis are between
	Hop              float64 `json:"hop"`        // seconds of the host for a message between stages
	HopTP            float64 `json:"hop_tp"`     // and so much more where the ranks of the tensor axis have to meet again
	Logits           float64 `json:"logits"`     // bytes of an element of the logits with what its loss keeps
	Kept             float64 `json:"kept"`       // times of what a block saves, by the list in save
	Reserved         float64 `json:"reserved"`   // memory taken from the device, over what tensors use
	Context          float64 `json:"context"`    // bytes of the runtime and of communication
	Congestion       float64 `json:"congestion"` // of the network of the published runs; see package cost
	Source           string  `json:"source"`
}

// Profiles returns every profile, as in profiles.json.
func Profiles() ([]Profile, error) {
	d := json.NewDecoder(bytes.NewReader(profilesFile))
	d.DisallowUnknownFields()
	var all []Profile
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("price: profiles.json: %w", err)
	}
	return all, nil
}

// ProfileOf returns the profile of a name.
func ProfileOf(name string) (Profile, error) {
	all, err := Profiles()
	if err != nil {
		return Profile{}, err
	}
	var names []string
	for _, p := range all {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("price: no framework %q; use %s", name, strings.Join(names, ", "))
}
