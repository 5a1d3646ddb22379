package checkpoint

import (
	"fmt"
	"slices"

	"carve/mesh"
	"carve/tensor"
)

// Read reads the whole of a global tensor into dst; see [Checkpoint.ReadRegion].
func (c *Checkpoint) Read(name string, d tensor.DType, shape []int, dst []byte) error {
	return c.ReadRegion(name, d, shape, whole(shape), dst)
}

// ReadRegion reads a block of a global tensor into dst, row by row, from the slices that hold it, whatever layout wrote
// them. The dtype and the global shape must be the tensor's, and dst as long as the block. The hash of every slice that
// is touched is compared.
func (c *Checkpoint) ReadRegion(name string, d tensor.DType, shape []int, block mesh.Region, dst []byte) error {
	t, ok := c.Find(name)
	switch {
	case !ok:
		return fmt.Errorf("checkpoint: %s has no tensor %q; was it made with another plan?", c.Path, name)
	case t.DType != d || !slices.Equal(t.Shape, shape):
		return fmt.Errorf("checkpoint: tensor %q of %s is %v %v, this run needs %v %v; was it made with another plan?",
			name, c.Path, t.DType, t.Shape, d, shape)
	}
	if want := block.Elements() * d.Size(); len(dst) != want {
		return fmt.Errorf("checkpoint: %d bytes for a block of %d of tensor %q", len(dst), want, name)
	}
	for _, s := range t.Slices {
		if slices.Equal(s.Region, block) {
			return c.readSlice(t, s, dst)
		}
	}
	for _, s := range t.Slices {
		if !overlap(s.Region, block) {
			continue
		}
		held := make([]byte, s.Region.Elements()*d.Size())
		if err := c.readSlice(t, s, held); err != nil {
			return err
		}
		copyBlock(dst, held, block, s.Region, d.Size())
	}
	return nil
}

// readSlice reads a slice as it lies in its file, and compares the hash.
func (c *Checkpoint) readSlice(t Tensor, s Slice, dst []byte) error {
	f := c.files[s.File]
	info, _ := f.Find(s.Key)
	if _, err := f.file.ReadAt(dst, info.Start); err != nil {
		return damaged(f.path, "tensor %q: %v", clip(t.Name), reason(err))
	}
	if hashOf(dst) != s.Hash {
		return f.mismatch(t)
	}
	return nil
}

// copyBlock copies what two blocks of a tensor have in common from the one's bytes to the other's.
func copyBlock(dst, src []byte, to, from mesh.Region, size int) {
	if len(to) == 0 {
		copy(dst, src)
		return
	}
	lo, hi := max(to[0].Start, from[0].Start), min(to[0].Stop, from[0].Stop)
	if lo >= hi {
		return
	}
	toRow, fromRow := to[1:].Elements()*size, from[1:].Elements()*size
	dst, src = dst[(lo-to[0].Start)*toRow:], src[(lo-from[0].Start)*fromRow:]
	if toRow == fromRow && slices.Equal(to[1:], from[1:]) {
		copy(dst, src[:(hi-lo)*fromRow])
		return
	}
	for ; lo < hi; lo++ {
		copyBlock(dst[:toRow], src[:fromRow], to[1:], from[1:], size)
		dst, src = dst[toRow:], src[fromRow:]
	}
}
