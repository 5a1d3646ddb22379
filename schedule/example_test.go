package schedule_test

import (
	"fmt"

	"carve/schedule"
)

func Example() {
	spec := schedule.Spec{Kind: schedule.ZeroBubbleH1, Ranks: 3, Micro: 4}
	program, err := schedule.Generate(spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := schedule.Check(program)
	if err != nil {
		fmt.Println(err)
		return
	}
	times, err := schedule.Time(program, schedule.UnitCost())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(schedule.Text(program, times))
	published, _ := spec.Bubble(schedule.UnitCost())
	fmt.Println("published bubble", published, "actions", report.Actions, "held", report.PeakHeld)

	program.Ranks[1] = program.Ranks[1][1:] // forget to receive
	_, err = schedule.Check(program)
	fmt.Println(err)
	// Output:
	// zb-h1: 3 ranks, 4 micro-batches, time 14, bubble 14.3 %
	// 0 | F0 F1 F2 .  .  I0 W0 F3 I1 W1 I2 W2 I3 W3
	// 1 | .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
	// 2 | .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
	// F forward, I gradient of the input, W gradients of the weights
	// published bubble 2 actions 68 held [3 3 3]
	// schedule: rank 1, action 0, F0: what it needs was not received; move it after RecvActivation 0 < 0
}
