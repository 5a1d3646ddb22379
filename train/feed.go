package train

import (
	"carve/data"
)

// training deals out the micro-batches of a data rank from the first of a step on.
func (c *corpus) training(rank, step int) (feed, error) {
	return newCorpusFeed(c, c.dataset.Train, rank, step), nil
}

// validation deals out the held-back samples of a data rank from the beginning.
func (c *corpus) validation(rank int) (feed, error) {
	if c.dataset.Validation.Samples(c.plan.Workload.Sequence) == 0 {
		return nil, nil
	}
	return newCorpusFeed(c, c.dataset.Validation, rank, 0), nil
}

type corpusFeed struct {
	corpus data.Corpus
	seq    int
	next   int64
	stride int64
	b      int64
	buf    []int32
}

func newCorpusFeed(c *corpus, d data.Corpus, rank, step int) *corpusFeed {
	p := c.plan
	dp := p.Layout.DataParallel()
	f := &corpusFeed{corpus: d, seq: p.Workload.Sequence, b: int64(p.MicroBatch), stride: int64(p.MicroBatch * dp)}
	f.next = int64(step)*int64(p.Workload.GlobalBatch) + int64(rank*p.MicroBatch)
	f.buf = make([]int32, f.seq+1)
	return f
}

func (f *corpusFeed) Fill(tokens, targets []int32) (int64, error) {
	n := f.corpus.Samples(f.seq)
	for i := range f.b {
		if err := f.corpus.Read(f.buf, (f.next+i)*7919%n); err != nil {
			return 0, err
		}
		copy(tokens[int(i)*f.seq:], f.buf[:f.seq])
		copy(targets[int(i)*f.seq:], f.buf[1:])
	}
	f.next += f.stride
	return 0, nil
}
