package schedule

// Work returns how long a rank computes in a step: its passes times F + B.
func (s Spec) Work(c Cost) float64 {
	passes := s.Micro * s.chunks()
	if s.Kind == DualPipe {
		passes = s.Micro // each travels one of the two chunks
	}
	return float64(passes) * (c.Forward + c.backward())
}

// Bubble returns the published time that a rank is idle in a step at most, for equal stages and messages that take no
// time (Comm is not looked at). It is false for times where the published formula is not exact; Time knows better then.
//
//	afab, 1f1b    (p-1)(F+B)           Narayanan et al. 2021, arXiv 2104.04473, section 2.2
//	interleaved   (p-1)(F+B)           the same: F and B of a chunk are 1/v of the rank's
//	zb-h1         (p-1)(F+I-W)         Qi et al. 2023, arXiv 2401.10241, section 2; exact for W ≤ F and m ≥ p
//	zb-v          0                    the same, section 6; for F = I = W and m ≥ 2p-1
//	dualpipe      (p/2-1)(F&B+B-3W)    DeepSeek-AI 2024, arXiv 2412.19437, table 2; exact for F = I ≥ W and F&B = F+B
//	dualpipe-v    (p-1)(F&B+B-3W)      the same on half the ranks
//
// Both zero-bubble rows count a rank's idle time between its own first and last action (Timeline.Idle). The first
// rank of the others starts first and ends last, so that for it this is the whole bubble (Timeline.Bubble).
//
// Where a pair is quicker than its parts by d, DualPipe idles (p/2-2)·d less than published: the first and last pairs save, too.
func (s Spec) Bubble(c Cost) (float64, bool) {
	f, b, i, w := c.Forward, c.backward(), c.Input, c.Weight
	others := float64(s.Ranks - 1)
	switch s.Kind {
	case AllForwardAllBackward, OneForwardOneBackward, Interleaved:
		return others * (f + b), true
	case ZeroBubbleH1:
		return others * (f + i - w), w <= f && s.Micro >= s.Ranks
	case ZeroBubbleV:
		return 0, f == i && i == w && s.Micro >= 2*s.Ranks-1
	case DualPipe:
		others = float64(s.Ranks/2 - 1)
	case DualPipeV:
	}
	return others * (c.pair() + b - 3*w), f == i && w <= i && c.pair() == f+b
}

// BubbleFraction returns the part of a step that is bubble, 0 to 1: Bubble / (Bubble + Work). For GPipe and 1F1B that
// is (p-1)/(m+p-1).
func (s Spec) BubbleFraction(c Cost) (float64, bool) {
	bubble, ok := s.Bubble(c)
	return bubble / (bubble + s.Work(c)), ok
}

// PeakInFlight returns, for each rank, the published peak of passes (micro-batches times chunks) that have gone forward
// and whose gradient has not come back. It is false where the sources say nothing: zb-v with m < 2p-1.
//
//	afab          m                          Huang et al. 2019
//	1f1b          p-r                        Narayanan et al. 2021, section 2.2; so for zb-h1
//	interleaved   2(p-1-r) + (v-1)p + 1      Megatron-LM's warm-up and the one after it: p + (p-1)/v whole ones on rank 0
//	zb-v          2p                         of half the size: 1F1B's on its first rank. Qi et al. 2023, section 6
//	dualpipe      p+1                        DeepSeek-AI 2024, table 2
//	dualpipe-v    2p+1                       the same on half the ranks
//
// None is more than the rank has in all.
func (s Spec) PeakInFlight() ([]int, bool) {
	p, v := s.Ranks, s.chunks()
	peaks := make([]int, p)
	for r := range peaks {
		switch s.Kind {
		case AllForwardAllBackward:
			peaks[r] = s.Micro
		case OneForwardOneBackward, ZeroBubbleH1:
			peaks[r] = min(p-r, s.Micro)
		case Interleaved:
			peaks[r] = min(2*(p-1-r)+(v-1)*p+1, s.Micro*v)
		case ZeroBubbleV:
			peaks[r] = 2 * p
		case DualPipe:
			peaks[r] = p + 1
		case DualPipeV:
			peaks[r] = 2*p + 1
		}
	}
	return peaks, s.Kind != ZeroBubbleV || s.Micro >= 2*p-1
}

// PeakHeld is PeakInFlight for passes whose weight gradients are not yet added, which is what memory follows. The
// difference is zb-h1's: every rank keeps p (Qi et al. 2023, section 2.1: the peak of 1F1B's first rank).
func (s Spec) PeakHeld() ([]int, bool) {
	peaks, ok := s.PeakInFlight()
	if s.Kind == ZeroBubbleH1 {
		for r := range peaks {
			peaks[r] = min(s.Ranks, s.Micro)
		}
	}
	return peaks, ok
}
