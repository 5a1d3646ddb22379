// Package mesh lays the ranks of a job on five parallel axes and says how a tensor lies on them.
//
// The mesh is arange(world) seen as a five-dimensional grid; a process group is a slice of that grid.
//
//	DP  data parallel      splits the samples
//	TP  tensor parallel    splits heads, feed-forward and vocabulary
//	PP  pipeline parallel  splits the layers
//	CP  context parallel   splits the sequence
//	EP  expert parallel    splits the experts, and the samples as well
//
// A rank is written in mixed radix: its digits are the coordinates, and the order of the axes says
// which digit varies fastest. With order TP, CP, EP, DP, PP (the default), neighbouring ranks differ in
// their TP coordinate, so that the axis that talks most stays inside the fast domain:
//
//	rank = tp + TP·(cp + CP·(ep + EP·(dp + DP·pp)))
//
// An EP rank also carries its own data. So dense parameters are replicated over DP×EP×CP (DenseData)
// and expert parameters over DP×CP (ExpertData); gradients are reduced over the same groups. Samples
// are split over DP×EP (Samples). Megatron's data-parallel-size is our DP·EP.
//
// A Spec gives one placement per axis: Shard(dim), Replicate or Partial(op). It describes a tensor on
// the ranks that hold it at all; which pipeline stage holds a layer is the plan's matter, so the PP
// placement of a parameter is Replicate. From a Spec follow the local shape, the region of the global
// tensor that a coordinate holds, and the one coordinate that owns each region.
//
// Invariants, held by property tests against an enumeration of the grid:
//   - Rank and Coordinates are inverse to each other;
//   - the groups of any set of axes partition the ranks, and every member sees the same group;
//   - regions of a Spec's owners cover every element of the tensor exactly once.
package mesh
