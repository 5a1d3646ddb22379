package plan

import (
	"fmt"
	"slices"
	"strings"

	"carve/mesh"
	"carve/model"
	"carve/unit"
)

// Chunks returns the number of pieces that the schedule cuts the model into. Which pipeline rank holds
// a chunk is the schedule's matter.
func (l Layout) Chunks() int {
	pp := l.Degrees[mesh.PP]
	switch l.Pipeline.Schedule {
	case Interleaved:
		return pp * l.Pipeline.Virtual
	case ZeroBubbleV, DualPipeV:
		return 2 * pp
	case AllForwardAllBackward, OneForwardOneBackward, ZeroBubbleH1, DualPipe:
	}
	return pp
}

// StageLayers returns the number of layers of each chunk, in model order; the first chunk has the
// embedding as well, the last the final norm and head. The plan must be valid.
func (p Plan) StageLayers() []int {
	chunks, layers := p.Layout.Chunks(), p.Model.Config.Layers
	switch p.Layout.Pipeline.Stages.Kind {
	case Listed:
		return slices.Clone(p.Layout.Pipeline.Stages.Layers)
	case Even:
		return slices.Repeat([]int{layers / chunks}, chunks)
	case Balanced:
	}
	return balanced(layerWork(p.Model.Config, p.Workload.Sequence), float64(p.Model.Config.HeadFLOPs().Total()), chunks)
}

// layerWork returns the operations of every layer per token.
func layerWork(m model.Config, sequence int) []float64 {
	work := make([]float64, m.Layers)
	for layer := range work {
		work[layer] = float64(m.LayerFLOPs(layer, sequence, model.Causal).Total())
	}
	return work
}

// balanced deals layers out to chunks so that the largest load is as small as possible, the head counted
// on the last; within that bound loads are as even as whole layers allow. Each chunk gets a layer.
func balanced(work []float64, head float64, chunks int) []int {
	sums := make([]float64, len(work)+1) // sums[i] is the work of the first i layers
	for i, w := range work {
		sums[i+1] = sums[i] + w
	}
	bound := leastBound(sums, head, chunks)
	counts := make([]int, chunks)
	end, tail := len(work), head
	for chunk := chunks - 1; chunk > 0; chunk-- {
		start := nearestStart(sums, end, tail, chunk, bound)
		counts[chunk] = end - start
		end, tail = start, 0
	}
	counts[0] = end
	return counts
}

// nearestStart returns where a chunk that ends before layer end should start: no more load than bound,
// the layers before it still fit the chunks before it, and its load is nearest to an even share.
func nearestStart(sums []float64, end int, tail float64, before int, bound float64) int {
	share := (sums[end] + tail) / float64(before+1)
	best, found := end-1, false
	for start := end - 1; start >= before; start-- {
		load := sums[end] - sums[start] + tail
		if load > bound && start < end-1 {
			break
		}
		if !fits(sums[:start+1], 0, before, bound) {
			continue
		}
		if !found || distance(load, share) <= distance(sums[end]-sums[best]+tail, share) {
			best, found = start, true
		}
	}
	return best
}

// distance returns how far two loads are apart.
func distance(a, b float64) float64 { return max(a-b, b-a) }

// fits tells whether layers with the given running sums go into at most the given number of chunks of at
// least one layer each, none above bound, with tail added to the last.
func fits(sums []float64, tail float64, chunks int, bound float64) bool {
	end := len(sums) - 1
	if end < chunks {
		return false
	}
	for range chunks {
		start := end - 1
		for start > 0 && sums[end]-sums[start-1]+tail <= bound {
			start--
		}
		if sums[end]-sums[start]+tail > bound {
			return false
		}
		if end, tail = start, 0; end == 0 {
			return true
		}
	}
	return false
}

// leastBound returns the smallest load of the fullest chunk, within rounding.
func leastBound(sums []float64, head float64, chunks int) float64 {
	low, high := 0.0, sums[len(sums)-1]+head
	for range 60 { // halves the interval below a float's last digit
		if middle := (low + high) / 2; fits(sums, head, chunks, middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high * (1 + 1e-12) // so that equal sums in another order still fit
}

// StageParameters returns the parameters of each chunk; a tied head that is not on the embedding's chunk
// is a second copy of it and counted there.
func (p Plan) StageParameters() []unit.Count {
	m := p.Model.Config
	edges := m.EdgeParameters()
	counts := make([]unit.Count, p.Layout.Chunks())
	layer := 0
	for chunk, layers := range p.StageLayers() {
		for range layers {
			counts[chunk] += m.LayerParameters(layer).Total()
			layer++
		}
	}
	last := len(counts) - 1
	counts[0] += edges[model.Embedding] + edges[model.Positional]
	counts[last] += edges[model.Normal] + edges[model.Head] + m.PredictorParameters().Total()
	if m.TieEmbeddings && last > 0 {
		counts[last] += edges[model.Embedding]
	}
	return counts
}

// pipeline checks how layers and micro-batches go into the schedule.
func (c *checker) pipeline(p Plan) {
	pipe, pp := p.Layout.Pipeline, p.Layout.Degrees[mesh.PP]
	if pipe.Schedule == Interleaved && pipe.Virtual < 2 && pp > 1 {
		c.add(RuleSchedule, "layout.pipeline.virtual layout.pipeline.schedule", "schedule interleaved has one chunk per rank; use virtual 2 or more, or schedule 1f1b")
	}
	if pipe.Schedule != Interleaved && pipe.Virtual != 1 {
		c.add(RuleSchedule, "layout.pipeline.virtual", "virtual is %d, which schedule %s does not have; use virtual 1 or schedule interleaved", pipe.Virtual, pipe.Schedule)
	}
	c.stages(p)
	if p.Workload.GlobalBatch%(p.MicroBatch*p.Layout.DataParallel()) == 0 {
		c.microBatches(p)
	}
}

// The keys that say how many chunks there are, and how many micro-batches they get.
const (
	stageKeys = "layout.pipeline.stages layout.pp layout.pipeline.virtual"
	roundKeys = "workload.global_batch layout.pp layout.pipeline.schedule"
)

// stages checks that every layer is on one chunk.
func (c *checker) stages(p Plan) {
	chunks, layers := p.Layout.Chunks(), p.Model.Config.Layers
	stages := p.Layout.Pipeline.Stages
	what := fmt.Sprintf("pipeline degree %d with schedule %s", p.Layout.Degrees[mesh.PP], p.Layout.Pipeline.Schedule)
	switch stages.Kind {
	case Listed:
		c.listed(stages.Layers, chunks, layers, what)
	case Even:
		if layers%chunks != 0 {
			c.add(RuleStages, stageKeys, "%s makes %d chunks, which do not divide %d layers evenly; use %s chunks, or stages: balanced",
				what, chunks, layers, divisors(layers, anyNumber))
		}
	case Balanced:
		if chunks > layers {
			c.add(RuleStages, "layout.pp layout.pipeline.virtual", "%s makes %d chunks of %d layers; use at most %d chunks", what, chunks, layers, layers)
		}
	}
}

// listed checks a list of layers per chunk. The ends may have none: embedding and head stand there.
func (c *checker) listed(list []int, chunks, layers int, what string) {
	sum := 0
	for chunk, n := range list {
		least := 1
		if chunk == 0 || chunk == len(list)-1 {
			least = 0
		}
		if n < least || n > layers {
			c.add(RuleStages, fmt.Sprintf("layout.pipeline.stages.%d", chunk), "stage %d has %d layers; use %d to %d", chunk, n, least, layers)
			return
		}
		sum += n
	}
	if len(list) != chunks {
		c.add(RuleStages, stageKeys, "stages lists %d chunks and %s makes %d; list %d", len(list), what, chunks, chunks)
	}
	if sum != layers {
		c.add(RuleStages, stageKeys, "stages places %d layers of %d; make the list sum to %d", sum, layers, layers)
	}
}

// microBatches checks that the schedule can take the number of micro-batches.
func (c *checker) microBatches(p Plan) {
	pp, m := p.Layout.Degrees[mesh.PP], p.MicroBatches()
	share := p.MicroBatch * p.Layout.DataParallel()
	switch p.Layout.Pipeline.Schedule {
	case Interleaved:
		if m%pp != 0 && pp > 1 {
			c.add(RuleSchedule, roundKeys, "schedule interleaved takes micro-batches in rounds of pipeline degree %d, and %d is no multiple; use global batch %s",
				pp, m, multiples(p.Workload.GlobalBatch, pp*share))
		}
	case DualPipe:
		if pp%2 != 0 || m%2 != 0 || m < 2*pp {
			c.add(RuleSchedule, roundKeys, "schedule dualpipe needs an even pipeline degree and an even number of micro-batches from %d up, not %d and %d; use global batch %d, or schedule 1f1b",
				2*pp, pp, m, 2*pp*share)
		}
	case DualPipeV:
		if m < 2*pp {
			c.add(RuleSchedule, roundKeys, "schedule dualpipe-v needs %d micro-batches or more, not %d; use global batch %d, or schedule 1f1b", 2*pp, m, 2*pp*share)
		}
	case AllForwardAllBackward, OneForwardOneBackward, ZeroBubbleH1, ZeroBubbleV:
	}
}

// counted writes runs of equal numbers shortly, "3 x 20, 19, 1", or their bounds where there are many.
func counted(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j < len(numbers) && numbers[j] == numbers[i] {
			j++
		}
		if j-i > 1 {
			parts = append(parts, fmt.Sprintf("%d x %d", j-i, numbers[i]))
		} else {
			parts = append(parts, fmt.Sprint(numbers[i]))
		}
		i = j
	}
	if len(parts) > 8 {
		return fmt.Sprintf("%d to %d each", slices.Min(numbers), slices.Max(numbers))
	}
	return strings.Join(parts, ", ")
}
