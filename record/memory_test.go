package record_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"carve/mesh"
	"carve/plan"
	"carve/record"
	"carve/tensor"
	"carve/unit"
)

var update = flag.Bool("update", false, "rewrite docs/memory.md")

// The model of the table. Symbols as everywhere: L layers, H hidden, A and K heads, D head size, F features, V vocabulary, S
// sequence; B is 1.
const (
	tableL, tableH, tableA, tableK, tableD, tableF, tableV, tableS = 8, 512, 8, 4, 64, 1536, 8192, 512
	tableE                                                         = 8 // experts, of the rows that have some

	tableModel = `
version: 1
model: {architecture: llama, layers: 8, hidden: 512, heads: 8, kv_heads: 4, head_dim: 64, ffn: 1536, vocab: 8192, context: 512, tie_embeddings: false}
workload: {sequence: 512, global_batch: 16, steps: 1}
cluster: {preset: this-machine}
micro_batch: 1
precision: bf16
`
	tableNorms = (2*tableL + 1) * tableH
	tableBlock = tableH*(tableA+2*tableK)*tableD + tableA*tableD*tableH + 3*tableH*tableF
	tableP     = 2*tableV*tableH + tableL*tableBlock + tableNorms
)

// memoryRow is a layout, and the closed forms of what a rank holds under it. Formulas are in bytes, of bf16 training: 2 for
// a parameter, 2 for its gradient (4 where shards are accumulated), 12 for master and moments.
type memoryRow struct {
	name, layout, rest string
	rank               int
	parameter          int    // persistent
	gradient           int    // persistent
	optimizer          int    //
	kept               int    // activations that live from forward to backward; 0 where no form is given
	form               string // of the row, for people
	experts            bool   // the model has a mixture of experts in place of every feed-forward
}

// evenStages are stages of equal numbers of layers.
var evenStages = map[int]string{2: "[4, 4]", 4: "[2, 2, 2, 2]"}

// keptBytes is what layers keep of a micro-batch: rows of the residual stream, rows of what the branches compute, 1/tp of
// whose features are here, and statistics.
func keptBytes(layers, residual, rows, tp int) int {
	wide := ((2*tableA+2*tableK)*tableD + 2*tableF) / tp
	return layers * (2*(2*tableH*residual+wide*rows) + 4*(2*residual+tableA/tp*rows))
}

// headBytes is the gradient that a fused head leaves.
func headBytes(rows int) int { return 2 * tableH * rows }

func memoryRows() []memoryRow {
	whole := keptBytes(tableL, tableS, tableS, 1) + headBytes(tableS)
	state := func(name, layout, form string, p, g, o int) memoryRow {
		return memoryRow{name: name, layout: layout, parameter: p, gradient: g, optimizer: o, kept: whole, form: form}
	}
	rows := []memoryRow{
		state("one rank", "{}", "16P", 2*tableP, 2*tableP, 12*tableP),
		state("dp 4, ZeRO 0", "{dp: 4, zero: {stage: 0}}", "16P", 2*tableP, 2*tableP, 12*tableP),
		state("dp 4, ZeRO 1", "{dp: 4, zero: {stage: 1}}", "4P + 12P/4", 2*tableP, 2*tableP, 3*tableP),
		state("dp 4, ZeRO 2", "{dp: 4, zero: {stage: 2}}", "2P + 4P/4 + 12P/4", 2*tableP, tableP, 3*tableP),
		state("dp 4, ZeRO 3", "{dp: 4, zero: {stage: 3}}", "2P/4 + 4P/4 + 12P/4", tableP/2, tableP, 3*tableP),
		state("dp 4, ZeRO 3 in pairs", "{dp: 4, zero: {stage: 3, hybrid: 2}}", "2P/2 + 4P/2 + 12P/2", tableP, 2*tableP, 6*tableP),
	}
	for _, n := range []int{2, 4} {
		p := (tableP-tableNorms)/n + tableNorms
		r := state(fmt.Sprintf("tp %d", n), fmt.Sprintf("{tp: %d, sequence_parallel: false}", n), "16(P-norms)/TP + 16·norms", 2*p, 2*p, 12*p)
		r.kept = keptBytes(tableL, tableS, tableS, n) + headBytes(tableS)
		rows = append(rows, r)
		r.name += " with sequence parallelism"
		r.layout = fmt.Sprintf("{tp: %d, sequence_parallel: true}", n)
		r.kept = keptBytes(tableL, tableS/n, tableS, n) + headBytes(tableS/n)
		rows = append(rows, r)
	}
	for _, n := range []int{2, 4} {
		for _, stage := range []int{0, n - 1} {
			p := tableV*tableH + tableL/n*(tableBlock+2*tableH)
			r := state(fmt.Sprintf("pp %d, first stage", n), fmt.Sprintf("{pp: %d, pipeline: {schedule: 1f1b, stages: %s}}", n, evenStages[n]), "16P of the stage", 0, 0, 0)
			r.rank, r.kept = stage, n*keptBytes(tableL/n, tableS, tableS, 1)
			if stage > 0 {
				r.name = fmt.Sprintf("pp %d, last stage", n)
				r.kept = keptBytes(tableL/n, tableS, tableS, 1) + headBytes(tableS)
				p += tableH
			}
			r.parameter, r.gradient, r.optimizer = 2*p, 2*p, 12*p
			rows = append(rows, r)
		}
	}
	for _, n := range []int{2, 4} {
		r := state(fmt.Sprintf("cp %d", n), fmt.Sprintf("{cp: %d, zero: {stage: 0}}", n), "16P; rows/CP", 2*tableP, 2*tableP, 12*tableP)
		r.kept = keptBytes(tableL, tableS/n, tableS/n, 1) + headBytes(tableS/n)
		rows = append(rows, r)
	}
	for _, n := range []int{2, 4} {
		const experts = tableL * tableE * 3 * tableH * tableF
		dense := tableP - tableL*3*tableH*tableF + tableL*tableE*tableH
		r := state(fmt.Sprintf("ep %d", n), fmt.Sprintf("{ep: %d, zero: {stage: 0}}", n), "16(P-experts) + 16·experts/EP", 0, 0, 0)
		r.experts, r.kept = true, 0
		r.parameter = 2 * (dense + experts/n)
		r.gradient, r.optimizer = r.parameter, 6*r.parameter
		rows = append(rows, r)
	}
	r := state("recompute selective", "{}", "16P; without attention's result", 2*tableP, 2*tableP, 12*tableP)
	r.rest, r.kept = "recompute: selective\n", whole-tableL*tableS*(2*tableA*tableD+4*tableA)
	rows = append(rows, r)
	r = state("recompute full", "{}", "16P; the blocks' inputs", 2*tableP, 2*tableP, 12*tableP)
	r.rest, r.kept = "recompute: full\n", tableL*2*tableH*tableS+headBytes(tableS)
	rows = append(rows, r)
	r = state("offload of activations", "{}", "16P; one block at a time", 2*tableP, 2*tableP, 12*tableP)
	r.rest, r.kept = "offload: activations\n", headBytes(tableS)
	return append(rows, r)
}

// measure records a row.
func (r memoryRow) measure(t *testing.T) record.Rank {
	t.Helper()
	model := tableModel
	if r.experts {
		model = strings.NewReplacer("architecture: llama", "architecture: mixtral", "tie_embeddings: false",
			fmt.Sprintf("tie_embeddings: false, experts: {count: %d, per_token: 2, ffn: %d}", tableE, tableF)).Replace(model)
	}
	p, err := plan.Load([]byte(model+"layout: "+r.layout+"\n"+r.rest), nil)
	if err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	m, err := p.Layout.Mesh()
	if err != nil {
		t.Fatal(err)
	}
	rank := m.Rank(mesh.Coordinates{mesh.PP: r.rank})
	out, err := record.Run(p, rank, record.Options{Kernels: tensor.PortableKernels})
	if err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	return out
}

// faults lists where a rank differs from a row's closed forms: persistent state to the byte but for what sharding rounds up;
// activations from what is kept by more than the logits and three layers.
func (r memoryRow) faults(got record.Rank) (faults []string) {
	for _, c := range []struct {
		category tensor.Category
		want     int
	}{{tensor.Parameter, r.parameter}, {tensor.Gradient, r.gradient}, {tensor.Optimizer, r.optimizer}} {
		if b := int(got.Built.Of(c.category)); b < c.want || b > c.want+c.want/1000 {
			faults = append(faults, fmt.Sprintf("%s: %v %d, want %d", r.name, c.category, b, c.want))
		}
	}
	most := got.Most.Of(tensor.Activation)
	beside, room := int(most)-r.kept, 4*tableS*tableV+3*keptBytes(1, tableS, tableS, 1)
	if r.kept > 0 && (beside < 0 || beside > room) {
		faults = append(faults, fmt.Sprintf("%s: activations %v, of which %v are kept", r.name, most, unit.Bytes(r.kept)))
	}
	return faults
}

// TestMemoryFallsAsItShould compares every layout with its closed forms, and holds that forms which are off are noticed.
func TestMemoryFallsAsItShould(t *testing.T) {
	for _, r := range memoryRows() {
		got := r.measure(t)
		for _, f := range r.faults(got) {
			t.Error(f)
		}
		wrong := r
		wrong.optimizer -= wrong.optimizer / 100
		if len(wrong.faults(got)) == 0 {
			t.Errorf("%s: nobody misses a hundredth of the optimizer's state", r.name)
		}
	}
}

// TestMemoryTable holds docs/memory.md to what is recorded.
func TestMemoryTable(t *testing.T) {
	const page = "../docs/memory.md"
	text := memoryPage(t)
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(old) != text {
		t.Errorf("%s is not what is recorded; run go test ./record -run MemoryTable -update", page)
	}
}

func memoryPage(t *testing.T) string {
	var b strings.Builder
	fmt.Fprintf(&b, memoryIntroduction, unit.Count(tableP), tableL, tableH, tableA, tableK, tableF, tableV, tableS)
	mib := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f", float64(n)/float64(unit.MiB))
	}
	for _, r := range memoryRows() {
		got := r.measure(t)
		state := got.Built.Of(tensor.Parameter) + got.Built.Of(tensor.Gradient) + got.Built.Of(tensor.Optimizer)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.name, r.form,
			mib(r.parameter+r.gradient+r.optimizer), mib(int(state)),
			mib(int(got.Most.Of(tensor.Parameter))), mib(int(got.Most.Of(tensor.Gradient))), mib(int(got.Most.Of(tensor.Optimizer))),
			mib(r.kept), mib(int(got.Most.Of(tensor.Activation))), mib(int(got.Peak.Usage.Total())))
	}
	return b.String()
}

const memoryIntroduction = `# Memory of a rank by layout

This page is written by a test (` + "`go test ./record -run MemoryTable -update`" + `). It shows how the memory of one rank falls as a plan splits more, beside
the closed forms that it should follow. The model has P = %v parameters (L %d, H %d, A %d, K %d, F %d, V %d), in bf16 with AdamW:
2 bytes for a parameter, 2 for its gradient (4 where ZeRO accumulates shards of it in fp32), 12 for master and moments. S is %d, one
sequence is a micro-batch, 16 are a step.

Numbers are MiB, of the arena, recorded on the meta device. Records equal real runs to the byte (` + "`record/equality_test.go`" + `); the test of this
page holds state to its closed form within a thousandth, and activations to what is kept plus the logits and three layers.

- *State* is what lives before the first step: parameters, gradients, optimizer. *Parameter*, *gradient* and *optimizer* are peaks during a step:
  under ZeRO 2 and 3 they have the units in use besides.
- *Kept* is what blocks leave from forward to backward, per token 2·H + (2A+2K)·D + 2·F numbers and statistics, times the micro-batches in flight,
  and what the head leaves; with experts it is not given. *Activation* is the peak, with what the layers use meanwhile.
- *Total* is the peak of all categories at one moment, workspace included.

| layout | state in bytes | state, expected | state | parameter | gradient | optimizer | kept, expected | activation | total |
|---|---|---|---|---|---|---|---|---|---|
`
