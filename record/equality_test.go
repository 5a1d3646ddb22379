package record_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"carve/comm"
	"carve/nn"
	"carve/parallel"
	"carve/plan"
	"carve/record"
	"carve/tensor"
	"carve/trace"
	"carve/unit"

	"github.com/google/go-cmp/cmp"
)

// base is a plan that every layout of the tests is put on.
const base = `
version: 1
model: {architecture: llama, layers: 8, hidden: 16, heads: 4, kv_heads: 2, head_dim: 4, ffn: 24, vocab: 259, context: 64, tie_embeddings: false}
workload: {sequence: 16, global_batch: 16, steps: 2}
cluster: {preset: this-machine}
micro_batch: 1
precision: PRECISION
optimizer: {name: adamw, learning_rate: 1e-3}
`

// experts turns the model of base into one with a mixture of experts.
var experts = strings.NewReplacer("architecture: llama", "architecture: mixtral", "tie_embeddings: false", "tie_embeddings: false, experts: {count: 4, per_token: 2, ffn: 24}")

// layouts are cuts along every axis, alone and together; those that the engine refuses so far are left out by its own
// check. Extra lines follow the layout.
var layouts = []string{
	"{}",
	"{dp: 2, zero: {stage: 0, bucket: 4KiB}}",
	"{dp: 2, zero: {stage: 0, reduce: naive}}",
	"{dp: 2, zero: {stage: 0, reduce: server}}",
	"{dp: 2, zero: {stage: 1}}",
	"{dp: 4, zero: {stage: 2}}",
	"{dp: 2, zero: {stage: 3}}",
	"{dp: 4, zero: {stage: 3, prefetch: 2, hybrid: 2}}",
	"{tp: 2}",
	"{tp: 4}",
	"{tp: 2, sequence_parallel: true}",
	"{tp: 4, sequence_parallel: true}",
	"{cp: 2}",
	"{cp: 4, context: {kind: ring, balance: contiguous}}",
	"{cp: 2, context: {kind: all-gather}}",
	"{cp: 2, context: {kind: all-to-all}}",
	"{ep: 2}",
	"{ep: 4, zero: {stage: 2}}",
	"{ep: 2, dp: 2, tp: 2}",
	"{ep: 2, tp: 2, sequence_parallel: true, experts: {tensor: 2}}",
	"{ep: 2, cp: 2, zero: {stage: 3}}",
	"{dp: 2, tp: 2, cp: 2}",
	"{dp: 2, tp: 2, zero: {stage: 3}, sequence_parallel: true}",
	"{pp: 2, pipeline: {schedule: afab}}",
	"{pp: 4, pipeline: {schedule: 1f1b}}",
	"{pp: 2, pipeline: {schedule: interleaved, virtual: 2}}",
	"{pp: 2, pipeline: {schedule: zb-h1}}",
	"{pp: 2, pipeline: {schedule: zb-v}}",
	"{pp: 4, pipeline: {schedule: zb-h1}}",
	"{pp: 2, pipeline: {schedule: dualpipe}}",
	"{pp: 2, pipeline: {schedule: dualpipe-v}}",
	"{pp: 2, dp: 2, zero: {stage: 3}, pipeline: {schedule: interleaved, virtual: 2}}",
	"{dp: 2, tp: 2, pp: 2, cp: 2, sequence_parallel: true, pipeline: {schedule: 1f1b}}",
}

// variants are lines after the layout.
var variants = []string{"", "recompute: full\n", "recompute: selective\n", "offload: activations\n"}

// load makes a plan of base, or reports that nobody runs it.
func load(t *testing.T, precision, layout, variant string) (plan.Plan, bool) {
	t.Helper()
	text := strings.Replace(base, "PRECISION", precision, 1)
	if strings.Contains(layout, "ep:") {
		text = experts.Replace(text)
	}
	p, err := plan.Load([]byte(text+"layout: "+layout+"\n"+variant), nil)
	if err != nil {
		t.Fatalf("%s: %v", layout, err)
	}
	return p, parallel.Check(p) == nil
}

// measured is what a rank used.
type measured struct {
	Peak, Most map[string]unit.Bytes
	Costs      map[string][2]int // calls and bytes by group and operation
}

func usage(u tensor.Usage) map[string]unit.Bytes {
	by := map[string]unit.Bytes{}
	for _, c := range tensor.Categories() {
		by[c.String()] = u.Of(c)
	}
	return by
}

// evenly is a device whose routers send as many rows to every expert, as a record takes it.
type evenly struct{ tensor.Device }

func (d evenly) Route(op tensor.Route) {
	d.Device.Route(op)
	for i := range op.Choice.I32() {
		op.Choice.I32()[i] = int32(i % op.Scores.Cols())
	}
}

// run measures a plan on local ranks.
func run(t *testing.T, p plan.Plan) []measured {
	t.Helper()
	world := comm.NewLocal(p.Layout.World(), comm.LocalOptions{})
	ends := world.Endpoints()
	observed := make([]*comm.Observed, len(ends))
	for i := range ends {
		observed[i] = comm.Observe(ends[i], comm.ObserveOptions{Clock: func() trace.Tick { return 0 }})
		ends[i] = observed[i]
	}
	engines := make([]*parallel.Engine, len(ends))
	err := comm.Run(context.Background(), ends, func(end comm.Endpoint) (err error) {
		failed := nn.Guard(func() {
			e, made := parallel.New(end, p, parallel.Options{Device: func(a *tensor.Arena) tensor.Device { return evenly{tensor.NewCPU(a, 1)} }})
			engines[end.Rank()], err = e, made
			for i := 0; err == nil && i < len(e.Tokens()); i++ {
				e.Tokens()[i], e.Targets()[i] = int32(7*i%p.Model.Config.Vocab), int32(11*i%p.Model.Config.Vocab)
			}
			for step := 0; err == nil && step < p.Steps(); step++ {
				_, err = e.Step(step, 1e-3)
			}
		})
		return errors.Join(failed, err)
	})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]measured, len(ends))
	for i, e := range engines {
		out[i] = measured{usage(e.Rank().Arena.Peak().Usage), usage(e.Rank().Arena.Most()), map[string][2]int{}}
		for _, c := range observed[i].Costs() {
			out[i].Costs[fmt.Sprint(c.Group, " ", c.Op)] = [2]int{c.Calls, int(c.Bytes)}
		}
		e.Close()
	}
	return out
}

// costs sums the transfers that a record tells of.
type costs struct {
	record.Nothing
	sum  map[string][2]int
	skip int // number of the transfer that is left out, from 1; 0 for none
	seen int
}

func (c *costs) Wait(_ record.Moment, t comm.Transfer) {
	if c.seen++; c.seen == c.skip {
		return
	}
	key := fmt.Sprint(t.Group.Name(), " ", t.Op)
	s := c.sum[key]
	c.sum[key] = [2]int{s[0] + 1, s[1] + int(t.Bytes)}
}

// price is what is recorded of a rank.
func price(t *testing.T, p plan.Plan, rank, skip int) measured {
	t.Helper()
	c := &costs{sum: map[string][2]int{}, skip: skip}
	r, err := record.Run(p, rank, record.Options{Steps: p.Steps(), Sink: c})
	if err != nil {
		t.Fatal(err)
	}
	return measured{usage(r.Peak.Usage), usage(r.Most), c.sum}
}

// TestRecordEqualsRun holds the record of every rank to its run: the peak of memory by category to the byte, calls and bytes
// of every operation of every group.
func TestRecordEqualsRun(t *testing.T) {
	for i, layout := range layouts {
		if racing && i%6 > 0 { // a few are enough to look for races
			continue
		}
		t.Run("fp64"+layout, func(t *testing.T) { equal(t, "fp64", layout, "") })
		if i%2 == 1 {
			t.Run("bf16"+layout, func(t *testing.T) { equal(t, "bf16", layout, "") })
		}
	}
	for _, variant := range variants {
		layout := "{dp: 2, tp: 2, sequence_parallel: true}"
		t.Run(variant, func(t *testing.T) { equal(t, "fp32", layout, variant) })
	}
}

func equal(t *testing.T, precision, layout, variant string) {
	p, runs := load(t, precision, layout, variant)
	if !runs {
		return
	}
	for rank, want := range run(t, p) {
		if diff := cmp.Diff(want, price(t, p, rank, 0)); diff != "" {
			t.Fatalf("rank %d (-run +record):\n%s", rank, diff)
		}
	}
}

// TestRecordOfPairs holds the record of a schedule with pairs whose layers communicate to its run: the halves of a pair take
// turns as messages come, so that a run may hold more or less of both at once than the record, which runs one after the
// other.
func TestRecordOfPairs(t *testing.T) {
	p, _ := load(t, "fp64", "{pp: 2, tp: 2, zero: {stage: 0}, pipeline: {schedule: dualpipe-v}}", "")
	for rank, want := range run(t, p) {
		got := price(t, p, rank, 0)
		if diff := cmp.Diff(want.Costs, got.Costs); diff != "" {
			t.Errorf("rank %d (-run +record):\n%s", rank, diff)
		}
		for category, most := range want.Most {
			if recorded := got.Most[category]; most < recorded-recorded/2 || most > recorded+recorded/2 {
				t.Errorf("rank %d: %s of %v, recorded %v", rank, category, most, recorded)
			}
		}
	}
}

// TestMissingTransferIsNoticed leaves one operation out of a record.
func TestMissingTransferIsNoticed(t *testing.T) {
	p, _ := load(t, "fp64", "{dp: 2, tp: 2}", "")
	want := run(t, p)[0]
	if cmp.Equal(want, price(t, p, 0, 7)) {
		t.Error("nobody misses an operation")
	}
}
