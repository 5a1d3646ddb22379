package cost

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"carve/unit"
)

//go:embed constants.json
var constantsFile []byte

// Constants say how much of its data sheet a kind of device reaches.
type Constants struct {
	Kind              string       `json:"kind"` // the name of such a device begins with it or has it after a space
	MatMul            float64      `json:"matmul"`
	Units             float64      `json:"units"` // that tiles of a product are dealt out to; 1 for none in particular
	Depth             float64      `json:"depth"` // that a tile's begin and end are worth
	Attention         float64      `json:"attention"`
	AttentionBackward float64      `json:"attention_backward"`
	Bandwidth         float64      `json:"bandwidth"`
	Launch            unit.Seconds `json:"launch"` // of an operation
	Links             []float64    `json:"links"`  // by level, the last for all further out
	Source            string       `json:"source"`
	Residual          string       `json:"residual"`
}

// other is the kind of devices that the file does not name.
const other = "other"

// AllConstants returns the constants of every kind, as in constants.json. The error tells what is wrong with that file.
func AllConstants() ([]Constants, error) {
	d := json.NewDecoder(bytes.NewReader(constantsFile))
	d.DisallowUnknownFields()
	var all []Constants
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("cost: constants.json: %w", err)
	}
	for _, c := range all {
		if err := c.validate(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (c Constants) validate() error {
	for _, f := range append([]float64{c.MatMul, c.Attention, c.AttentionBackward, c.Bandwidth}, c.Links...) {
		if !(f > 0 && f <= 1) {
			return fmt.Errorf("cost: constants.json: %s has a fraction of %v; use more than 0, at most 1", c.Kind, f)
		}
	}
	if c.Units < 1 || c.Depth < 0 || c.Launch < 0 || len(c.Links) == 0 || c.Source == "" || c.Residual == "" {
		return fmt.Errorf("cost: constants.json: %s is not complete", c.Kind)
	}
	return nil
}

// ConstantsOf returns the constants for a device's name, and whether its kind is known.
func ConstantsOf(device string) (c Constants, known bool, err error) {
	all, err := AllConstants()
	if err != nil {
		return c, false, err
	}
	for _, c = range all {
		if c.Kind != other && describes(c.Kind, device) {
			return c, true, nil
		}
	}
	return all[len(all)-1], false, nil
}

// describes tells whether a device is of a kind: of its generation.
func describes(kind, device string) bool {
	generation := map[string][]string{"H100": {"H100", "H200", "H800"}, "B200": {"B200", "B300", "GB200", "GB300"}}[kind]
	if generation == nil {
		generation = []string{kind}
	}
	for _, g := range generation {
		if strings.HasPrefix(device, g) {
			return true
		}
	}
	return false
}
