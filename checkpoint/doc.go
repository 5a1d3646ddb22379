// Package checkpoint keeps the state of a run on disk, so that a crash at any moment loses nothing older.
//
// # On disk
//
//	checkpoints/
//	  step-00000100/               exists only when it is whole
//	    manifest.json              what is inside: names, shapes, slices, hashes, the position in the data
//	    model-00000.safetensors    parameters under their Hugging Face names
//	    optimizer-00000.safetensors
//	  .step-00000200.partial/      being written, or left by a crash
//
// A checkpoint is written into a hidden sibling folder, every file and the folder are synced, and a rename
// puts it in place. So a step folder is whole unless the disk damaged it later, which the hashes tell.
//
// # Slices
//
// The manifest maps every global tensor to slices: which block of it lies in which file, with an xxHash64
// of the bytes. A rank writes the slices it owns; the slices of a tensor are disjoint and cover it. The
// number in a file's name is the rank that wrote it.
//
// # Reading
//
// Files are hostile until checked: lengths, offsets and shapes are compared with the file's true size before
// anything is allocated, and a header in which two entries claim the same bytes, a name appears twice, or bytes
// belong to nobody is refused. Every refusal is a [*DamageError] with the file and the reason.
//
// Numbers are stored in little-endian order, as safetensors demands and the machines that carve runs on have.
package checkpoint
