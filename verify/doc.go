// Package verify proves that a plan computes what one device computes.
//
// # What is compared
//
// [Run] runs a plan in fp64 on local ranks, and the same steps on one rank: the same samples, which are made up, the same
// initial weights, the same micro-batches one after the other. Each step it compares the loss, every gradient between reduction and update, and
// every parameter after the update, by name, on every rank that holds a piece: a stale copy is found where it is. A piece
// is compared with its region of the one rank's tensor.
//
// The relative error of a tensor is max|a-b| / max(max|b|, Floor·largest), largest being the largest element of all
// tensors of its kind in that step. Sums of n terms of size s in another order differ by about √n·2⁻⁵³·s, whatever the size of the
// result: a gradient that cancels to nothing (a key's bias without rotary position) or a tensor far below its neighbours would
// be held to digits that no order of summation has.
//
// Optimizers amplify: AdamW divides by √v+ε, which turns round-off of a gradient that is zero into a step of full size. The
// proof therefore replaces the optimizer's constants by ones under which an update is a smooth function of the gradient
// (see [Exact]); which rule, which state and which clipping is the plan's.
//
// # What is left out
//
// A proof of sizes that fit this machine: [Shrink] makes the plan small and keeps what makes it a layout. What depends on
// the sizes as they are is proved without running: [Check].
package verify
