package verify

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestLeastSquares recovers factors that it does not know, and says when there is nothing to recover.
func TestLeastSquares(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	const rows = 40
	columns := make([][]float64, 6)
	for i := range columns {
		columns[i] = make([]float64, rows)
		for j := range rows {
			columns[i][j] = random.NormFloat64()
		}
	}
	columns[4] = make([]float64, rows) // nothing to see of it
	want := []float64{1, 0, 2, 1, math.NaN(), -0.5}
	b := make([]float64, rows)
	for i, column := range columns {
		if i != 4 {
			for j, v := range column {
				b[j] += want[i] * v
			}
		}
	}
	c, rest, ok := leastSquares(columns, b)
	if !ok || rest > 1e-12 {
		t.Fatalf("%v leaves %v", c, rest)
	}
	for i, w := range want {
		if math.IsNaN(w) != math.IsNaN(c[i]) || math.Abs(c[i]-w) > 1e-12 {
			t.Errorf("factor %d is %v, want %v", i, c[i], w)
		}
	}
	b[7]++
	if _, rest, _ := leastSquares(columns, b); rest < 0.1 {
		t.Errorf("what is no sum of the columns leaves %v", rest)
	}
	columns[3] = columns[2]
	if _, _, ok := leastSquares(columns, b); ok {
		t.Error("equal columns have factors")
	}
}
