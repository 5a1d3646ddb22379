package kernel

// Gemm computes g on all workers.
func (c *Context) Gemm(g *Gemm) {
	g.check()
	c.Run(g.M, (*rowTask)(g))
}

type rowTask Gemm

func (g *rowTask) Do(_, i int) {
	for j := range g.N {
		s := 0.0
		for k := range g.K {
			s += g.A.at(i, k) * g.B.at(k, j)
		}
		if g.Alpha != 0 {
			s *= g.Alpha
		}
		if !g.Bias.empty() {
			s += g.Bias.at(0, j)
		}
		if !g.Residual.empty() {
			s += g.Residual.at(i, j)
		}
		if g.Write == Accumulate {
			s += g.C.at(i, j)
		}
		g.C.set(i, j, s)
	}
}
