package mesh_test

import (
	"fmt"

	"carve/mesh"
)

// Eight ranks, two-way tensor parallel inside two-way data parallel inside two pipeline stages.
func ExampleMesh_Groups() {
	m, err := mesh.New(mesh.Degrees{mesh.DP: 2, mesh.TP: 2, mesh.PP: 2}, mesh.DefaultOrder())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, axis := range []mesh.Axis{mesh.TP, mesh.DP, mesh.PP} {
		fmt.Println(axis, m.Groups(mesh.Of(axis)))
	}
	// Output:
	// tp [[0 1] [2 3] [4 5] [6 7]]
	// dp [[0 2] [1 3] [4 6] [5 7]]
	// pp [[0 4] [1 5] [2 6] [3 7]]
}

// The rows of a column-parallel matrix of 10 rows over three ranks: uneven, and every row once.
func ExampleSpec_Region() {
	m, err := mesh.New(mesh.Degrees{mesh.TP: 3}, mesh.DefaultOrder())
	if err != nil {
		fmt.Println(err)
		return
	}
	spec := mesh.Spec{mesh.TP: mesh.Shard(0)}
	for rank := range m.World() {
		fmt.Println(rank, spec.Region(m, m.Coordinates(rank), []int{10, 4}))
	}
	// Output:
	// 0 [{0 4} {0 4}]
	// 1 [{4 7} {0 4}]
	// 2 [{7 10} {0 4}]
}
