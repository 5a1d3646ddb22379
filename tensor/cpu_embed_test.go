package tensor

import (
	"testing"

	"carve/tensor/internal/kernel"
)

func TestEmbed(t *testing.T) {
	const start, rows = 10, 6
	ids := []int32{10, 15, 12, 9, 16, 12, 12, -1}
	var cases []opCase
	for _, width := range []int{1, 64, 200} {
		cases = append(cases, opCase{"forward", func(k *kit) (c trial) {
			table, y, id := k.random(rows, width), k.random(len(ids), width), k.ints(ids...)
			want := make([]float64, len(ids)*width)
			for r, i := range ids {
				if i >= start && i < start+rows {
					copy(want[r*width:][:width], values(table)[(int(i)-start)*width:])
				}
			}
			c.expect(y, want)
			c.call = func() { k.dev.Embed(y, table, id, start) }
			return c
		}}, opCase{"backward", func(k *kit) (c trial) {
			grad, dy, id := k.random(rows, width), k.random(len(ids), width), k.ints(ids...)
			want, d := values(grad), values(dy)
			for r, i := range ids {
				for j := range width {
					if i >= start && i < start+rows {
						want[(int(i)-start)*width+j] += d[r*width+j]
					}
				}
			}
			c.expect(grad, want)
			c.call = func() { k.dev.EmbedBackward(grad, dy, id, start) }
			return c
		}})
	}
	cases = append(cases, opCase{"empty", func(k *kit) (c trial) {
		table, y, id := k.random(rows, 8), k.random(0, 8), k.ints()
		c.expect(y, nil)
		c.call = func() {
			k.dev.Embed(y, table, id, 0)
			k.dev.EmbedBackward(table, y, id, 0)
		}
		return c
	}})
	testCases(t, cases)
}

// A block of a parameter gets the same numbers as the same place in the whole parameter.
func TestNormal(t *testing.T) {
	const rows, cols = 13, 4099
	whole := make([]float64, rows*cols)
	kernel.Normals(whole, 42, 0, 0.02)
	trialOf := func(k *kit, row, col, n, m int) (c trial) {
		x := k.random(n, m)
		want := make([]float64, 0, n*m)
		for i := range n {
			want = append(want, whole[(row+i)*cols+col:][:m]...)
		}
		c.expect(x, want)
		c.call = func() { k.dev.Normal(Normal{T: x, Key: 42, Std: 0.02, Row: row, Col: col, Cols: cols}) }
		return c
	}
	testCases(t, []opCase{
		{"whole", func(k *kit) trial { return trialOf(k, 0, 0, rows, cols) }},
		{"rows", func(k *kit) trial { return trialOf(k, 5, 0, 3, cols) }},
		{"columns", func(k *kit) trial { return trialOf(k, 0, 17, rows, 50) }},
		{"empty", func(k *kit) trial { return trialOf(k, 0, 17, 0, 50) }},
	})
}
