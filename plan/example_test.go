package plan_test

import (
	"fmt"

	"carve/plan"
)

// A plan that breaks two rules says so at once, with what would be legal.
func ExampleLoad() {
	_, err := plan.Load([]byte(`
version: 1
model: gpt2
workload: {global_batch: 256}
layout: {dp: 18, tp: 8}
micro_batch: 2
`), nil)
	fmt.Println(err)
	// Output:
	// plan: line 4, column 12: global batch 256 is not a multiple of micro-batch 2 x data degree 18 x expert degree 1 = 36; use 252 or 288
	// plan: line 5, column 18: tensor degree 8 does not divide 12 heads; use 1, 2, 3, 4, 6 or 12
}

// A legal plan may still deserve a word.
func ExamplePlan_Notes() {
	p, err := plan.Load([]byte(`
version: 1
model: llama-3.1-8b
layout: {tp: 16, pp: 4}
cluster: {preset: dgx-h100, nodes: 8}
`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, note := range p.Notes() {
		fmt.Println(note)
	}
	// Output:
	// plan: 32 layers do not lie evenly on 4 chunks: 8, 2 x 9, 6
	// plan: 8 key-value heads over tensor degree 16: each is held by 2 ranks; tensor degree 8 or less would hold it once
	// plan: tensor groups of 16 ranks cross infiniband (50.0 GB/s) instead of staying on nvlink (450 GB/s, 8 devices)
}
