package verify

import "math"

// leastSquares finds the factors c that bring the sum of c_i·columns_i nearest to b, and the largest element of what is left. The
// factor of a column of zeros is not a number. It reports false where the columns do not determine the others. It is a QR decomposition by modified Gram-Schmidt
// (Björck 1967), which is backward stable for least squares when b is treated as a further column.
func leastSquares(columns [][]float64, b []float64) (c []float64, rest float64, ok bool) {
	n := len(columns)
	q, r := make([][]float64, n), make([][]float64, n)
	left, qb := append([]float64(nil), b...), make([]float64, n)
	for i, column := range columns {
		q[i], r[i] = append([]float64(nil), column...), make([]float64, n)
	}
	for i := range q {
		size, whole := norm(q[i]), norm(columns[i])
		switch {
		case whole == 0:
			continue
		case size <= 1e-10*whole:
			return nil, 0, false
		}
		r[i][i] = size
		for k := range q[i] {
			q[i][k] /= size
		}
		for j := i + 1; j < n; j++ {
			r[i][j] = take(q[j], q[i])
		}
		qb[i] = take(left, q[i])
	}
	c = make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		if r[i][i] == 0 {
			continue
		}
		c[i] = qb[i]
		for j := i + 1; j < n; j++ {
			c[i] -= r[i][j] * c[j]
		}
		c[i] /= r[i][i]
	}
	for i := range c {
		if r[i][i] == 0 {
			c[i] = math.NaN()
		}
	}
	for _, v := range left {
		rest = max(rest, finite(math.Abs(v)))
	}
	return c, rest, true
}

func norm(v []float64) float64 { return math.Sqrt(dot(v, v)) }

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// take removes from v what lies along the unit vector q, and returns how much that was.
func take(v, q []float64) float64 {
	along := dot(v, q)
	for i := range v {
		v[i] -= along * q[i]
	}
	return along
}
