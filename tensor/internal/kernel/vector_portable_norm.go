package kernel

func (p portable[T]) MeanSquare(x []T) T { return T(p.SumSquares(x) / float64(len(x))) }

func (p portable[T]) Moments(x []T) (mean, variance T) {
	n := float64(len(x))
	m := p.Sum(x) / n
	s := 0.0
	for _, v := range x {
		d := float64(v) - m
		s += d * d
	}
	return T(m), T(s / n)
}

func (portable[T]) RMSApply(y, x, w []T, r T) {
	x, w = x[:len(y)], w[:len(y)]
	for i := range y {
		y[i] = x[i] * r * w[i]
	}
}

func (portable[T]) RMSDot(dy, w, x []T) T {
	w, x = w[:len(dy)], x[:len(dy)]
	s := 0.0
	for i, d := range dy {
		s += float64(d * w[i] * x[i])
	}
	return T(s)
}

func (portable[T]) RMSGrad(dx, dw, dy, w, x []T, r, k T) {
	dw, dy, w, x = dw[:len(dx)], dy[:len(dx)], w[:len(dx)], x[:len(dx)]
	for i := range dx {
		d, v := dy[i], x[i]
		dw[i] += d * (v * r)
		dx[i] = r*(d*w[i]) - k*v
	}
}

func (portable[T]) LayerApply(y, x, w, b []T, mean, r T) {
	x, w, b = x[:len(y)], w[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = (x[i]-mean)*r*w[i] + b[i]
	}
}

func (portable[T]) LayerSums(dy, w, x []T, mean, r T) (g, gx T) {
	w, x = w[:len(dy)], x[:len(dy)]
	var s, sx float64
	for i, d := range dy {
		t := float64(d * w[i])
		s += t
		sx += t * float64((x[i]-mean)*r)
	}
	return T(s), T(sx)
}

func (portable[T]) LayerGrad(dx, dw, db, dy, w, x []T, mean, r, g, gx T) {
	dw, db, dy, w, x = dw[:len(dx)], db[:len(dx)], dy[:len(dx)], w[:len(dx)], x[:len(dx)]
	for i := range dx {
		d, n := dy[i], (x[i]-mean)*r
		dw[i] += d * n
		db[i] += d
		dx[i] = r * (d*w[i] - g - n*gx)
	}
}
