// Package tensor holds the numbers of one rank: shapes, dtypes, the arena that all memory of a
// rank comes from, and the devices that compute on it.
//
// # Tensors
//
// A [Tensor] is a contiguous, row-major block of one dtype with a shape of at most [MaxDims]
// dimensions and a [Category] that says what the memory is for. An operator that wants a matrix
// takes the last dimension as columns and all others, multiplied, as rows: a tensor of shape
// [B S H] is the matrix [B·S, H].
//
// # Arena
//
// All memory of a rank comes from its [Arena]. It counts live bytes by category, keeps the peak with
// what was running when it happened, reuses freed blocks, and after warm-up allocates nothing: tensor
// headers are recycled as well. The count is the exact sum of elements × element size of the live
// tensors, so that the meta device, which has no memory, arrives at the same numbers.
//
// # Devices
//
// A [Device] is the narrow interface between the layers and the arithmetic. The cpu device computes
// (package internal/kernel); [Meta] records what it would cost. Layers never touch elements.
//
// # Errors
//
// Shapes and dtypes that do not fit are a caller's bug and panic. Running out of memory, which a user's input
// can cause, panics with [*LimitError] or [*SystemError]; the guard of a rank turns both into ordinary errors.
package tensor
