package comm_test

import (
	"context"
	"fmt"

	"carve/comm"
	"carve/tensor"
)

// Each of three ranks contributes its number; all get the sum.
func Example() {
	arena := tensor.NewArena(tensor.ArenaOptions{})
	defer arena.Close()
	world := comm.NewLocal(3, comm.LocalOptions{})
	err := comm.Run(context.Background(), world.Endpoints(), func(e comm.Endpoint) error {
		g, err := e.Group("dp", []int{0, 1, 2})
		if err != nil {
			return err
		}
		t := arena.NewZero(tensor.Gradient, tensor.FP32, 1)
		t.F32()[0] = float32(e.Rank())
		work := g.AllReduceStart(t, tensor.Sum) // compute meanwhile
		if err := work.Wait(); err != nil {
			return err
		}
		if e.Rank() == 0 {
			fmt.Println(t.F32()[0])
		}
		return nil
	})
	fmt.Println(err, world.Close())
	// Output:
	// 3
	// <nil> <nil>
}
