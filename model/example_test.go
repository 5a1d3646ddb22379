package model_test

import (
	"fmt"

	"carve/model"
)

// Parameters and operations of a published model, by kind.
func ExamplePreset() {
	c, err := model.Preset("llama-3.1-8b")
	if err != nil {
		fmt.Println(err)
		return
	}
	parameters, work := c.Parameters(), c.TrainingFLOPs(8192, model.Causal)
	for _, kind := range model.Kinds() {
		if parameters[kind] > 0 || work[kind] > 0 {
			fmt.Printf("%-9s %6s  %s\n", kind, parameters[kind], work[kind])
		}
	}
	fmt.Printf("%-9s %6s  %s per token\n", "total", parameters.Total(), work.Total())
	// Output:
	// embedding   525M  0.00 FLOP
	// attention  1.34B  8.05 GFLOP
	// scores         0  6.44 GFLOP
	// mlp        5.64B  33.8 GFLOP
	// norm        266K  0.00 FLOP
	// head        525M  3.15 GFLOP
	// total      8.03B  51.5 GFLOP per token
}
