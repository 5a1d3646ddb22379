package kernel

//go:generate go run -C _asm ./vector -out ../vector_amd64.s -stubs ../vector_amd64.go -pkg kernel

// Float is an element type that kernels compute in.
type Float interface{ float32 | float64 }

// Vector is the arithmetic on runs of elements that the cpu device is made of. Operands of one call have the
// length of the first, unless said otherwise, and either are the same run or do not overlap. A kernel's doc comment is
// the loop it replaces.
type Vector[T Float] interface {
	Pointwise[T]
	Sums[T]
	Normalise[T]
	Activate[T]
	Softmax[T]
	Panels[T]
	Optimise[T]
}

// Pointwise is arithmetic element by element.
type Pointwise[T Float] interface {
	// Fill is dst[i] = v.
	Fill(dst []T, v T)
	// Add is dst[i] += x[i].
	Add(dst, x []T)
	// AddScaled is dst[i] += a*x[i].
	AddScaled(dst []T, a T, x []T)
	// Scale is dst[i] = a*x[i].
	Scale(dst []T, a T, x []T)
	// Widen expands bf16 numbers.
	Widen(dst []T, x []uint16)
	// Narrow rounds to bf16, to nearest with ties to even; NaN stays NaN.
	Narrow(dst []uint16, x []T)
	// Rotate turns the pairs (a[i], b[i]) by the angles of cosines c and sines s:
	// a, b = a*c - b*s, b*c + a*s.
	Rotate(a, b, c, s []T)
	// Unrotate turns back: a, b = a*c + b*s, b*c - a*s.
	Unrotate(a, b, c, s []T)
}

// Sums are reductions of a run to a number.
type Sums[T Float] interface {
	// Sum is Σ x[i].
	Sum(x []T) float64
	// SumSquares is Σ x[i]², in float64 throughout.
	SumSquares(x []T) float64
	// Dot is Σ x[i]·y[i].
	Dot(x, y []T) T
	// Largest is max x[i]; -Inf of none. If one is NaN, it is any of them.
	Largest(x []T) T
	// Finite reports whether no element is an infinity or NaN.
	Finite(x []T) bool
}

// Normalise has the rows of RMSNorm and LayerNorm.
type Normalise[T Float] interface {
	// MeanSquare is Σ x[i]² / len(x).
	MeanSquare(x []T) T
	// Moments are the mean and the variance of x, in two passes.
	Moments(x []T) (mean, variance T)
	// RMSApply is y[i] = x[i]*r*w[i].
	RMSApply(y, x, w []T, r T)
	// RMSDot is Σ dy[i]*w[i]*x[i].
	RMSDot(dy, w, x []T) T
	// RMSGrad is dw[i] += dy[i]*x[i]*r; dx[i] = r*dy[i]*w[i] - k*x[i]. dx may be dy.
	RMSGrad(dx, dw, dy, w, x []T, r, k T)
	// LayerApply is y[i] = (x[i]-mean)*r*w[i] + b[i].
	LayerApply(y, x, w, b []T, mean, r T)
	// LayerSums are Σ dy[i]*w[i] and Σ dy[i]*w[i]*(x[i]-mean)*r.
	LayerSums(dy, w, x []T, mean, r T) (g, gx T)
	// LayerGrad is, with n = (x[i]-mean)*r: dw[i] += dy[i]*n; db[i] += dy[i]; dx[i] = r*(dy[i]*w[i] - g - n*gx).
	// dx may be dy.
	LayerGrad(dx, dw, db, dy, w, x []T, mean, r, g, gx T)
}

// Activate has the nonlinearities of feed-forward layers.
type Activate[T Float] interface {
	// SwiGLU is y[i] = g[i]*σ(g[i])*u[i].
	SwiGLU(y, g, u []T)
	// SwiGLUGrad is, with s = σ(g[i]): y[i] = g[i]*s*u[i]; dg[i] = dy[i]*u[i]*s*(1+g[i]*(1-s)); du[i] = dy[i]*g[i]*s.
	// dg may be g and du may be u; y may be dy.
	SwiGLUGrad(dg, du, y, dy, g, u []T)
	// GELU is y[i] = x[i]*σ(2·√(2/π)·(x[i]+0.044715·x[i]³)), the tanh form.
	GELU(y, x []T)
	// GELUGrad is y[i] = GELU(x[i]); dx[i] = dy[i]*GELU'(x[i]). dx may be x or dy.
	GELUGrad(dx, y, dy, x []T)
}

// Softmax has the rows of softmaxes.
type Softmax[T Float] interface {
	// Exp is x[i] = exp(x[i] - shift); it returns Σ x[i].
	Exp(x []T, shift T) T
	// SumExp is Σ exp(x[i] - shift).
	SumExp(x []T, shift T) T
	// SoftmaxGrad is x[i] = scale*exp(x[i] - shift).
	SoftmaxGrad(x []T, shift, scale T)
}

// Panels has the softmax of attention on transposed scores: rows are keys, and the columns of a panel, len(top), are
// queries.
type Panels[T Float] interface {
	// PanelSoftmax takes rows of scores into the softmax of each column and turns them into unnormalised
	// probabilities (Milakov and Gimelshein, arXiv 1805.02867): with t = max(top[i], s[·,i]),
	// s[j,i] = exp(s[j,i] - t), keep[i] = exp(top[i] - t), sum[i] = sum[i]*keep[i] + Σ s[j,i], top[i] = t.
	// Where t is -Inf, all are 0.
	PanelSoftmax(s, top, sum, keep []T)
	// PanelScale is x[j,i] *= a[i].
	PanelScale(x, a []T)
	// PanelGrad turns scores and gradients of probabilities into probabilities and gradients of scores:
	// s[j,i] = exp(s[j,i] - lse[i]); dp[j,i] = s[j,i]*(dp[j,i]-delta[i])*scale.
	PanelGrad(s, dp, lse, delta []T, scale T)
}

// Optimise has the optimizers' passes over parameters.
type Optimise[T Float] interface {
	// AdamW is one step; see [AdamStep].
	AdamW(p, m, v, g []T, s AdamStep)
	// SGD is m[i] = μ*m[i] + g[i]*scale; p[i] -= rate*(m[i] + decay*p[i]).
	SGD(p, m, g []T, s SGDStep)
}

// AdamStep holds the numbers of an AdamW step:
//
//	g = grad*GradScale; m += (1-Beta1)*(g-m); v += (1-Beta2)*(g*g-v)
//	p -= Rate*(m*Correct1/(sqrt(v*Correct2)+Eps) + Decay*p)
type AdamStep struct {
	Rate, Beta1, Beta2, Eps, Decay float64
	Correct1, Correct2             float64 // reciprocals of 1-β^t
	GradScale                      float64
}

// SGDStep holds the numbers of a step of gradient descent.
type SGDStep struct{ Rate, Momentum, Decay, GradScale float64 }
