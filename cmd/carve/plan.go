package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"carve/cluster"
	"carve/cost"
	"carve/internal/document"
	"carve/plan"
	"carve/price"
	"carve/search"
	"carve/unit"

	"github.com/spf13/cobra"
)

// planOptions are the flags of carve plan.
type planOptions struct {
	model     string
	cluster   string
	nodes     int
	sequence  int
	batch     int
	tokens    string
	framework string
	headroom  float64
	out       string
	json      bool
}

func newPlan() *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan MODEL",
		Short: "Find the layout for a model on a cluster, and say why",
		Long: `Find the layout for a model on a cluster, and say why.

MODEL is a preset, such as llama-3.1-70b, or the path of a config.json. Every legal layout over the five axes, micro-batch,
schedule, state sharding and recomputation is priced; what does not fit the device's memory is left out; of those that are about as fast the
simplest is chosen. Each neighbour of the choice is shown with what it would cost.

--out writes a plan that every other command takes.`,
		Example: `  carve plan llama-3.1-8b --cluster dgx-h100 --nodes 1 --sequence 8192 --global-batch 64
  carve plan llama-3.1-405b --cluster dgx-h100 --nodes 2048 --sequence 8192 --global-batch 2048 --tokens 15e12 --out plan.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return badInput(errors.New("plan: name one model: a preset such as llama-3.1-8b, or the path of a config.json"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.model = args[0]
			return runPlan(cmd.OutOrStdout(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.cluster, "cluster", "", "preset, or path of a cluster file")
	f.IntVar(&o.nodes, "nodes", 1, "nodes of the preset")
	f.IntVar(&o.sequence, "sequence", 0, "tokens of a sequence; 0 means the model's context, at most 8192")
	f.IntVar(&o.batch, "global-batch", 0, "sequences of a step; 0 means about four million tokens")
	f.StringVar(&o.tokens, "tokens", "", "tokens of the whole run, such as 15e12")
	f.StringVar(&o.framework, "framework", "carve", "whose memory and overlap count: carve, megatron, fsdp, deepspeed, nanotron, jax")
	f.Float64Var(&o.headroom, "headroom", 0.08, "part of the device's memory that is left alone")
	f.StringVar(&o.out, "out", "", "file for the plan")
	jsonFlag(cmd, &o.json)
	completeWords(cmd, "cluster", cluster.Presets()...)
	return cmd
}

// runPlan finds and shows a plan.
func runPlan(out io.Writer, o planOptions) error {
	q, err := o.question()
	if err != nil {
		return badInput(err)
	}
	begin := time.Now()
	a, err := search.Find(q)
	if err != nil {
		return badInput(err)
	}
	found := found{question: q, answer: a, seconds: unit.Seconds(time.Since(begin).Seconds())}
	if o.out != "" {
		if err := os.WriteFile(o.out, plan.Encode(a.Plan), 0o644); err != nil {
			return fmt.Errorf("plan: %w", err)
		}
	}
	if o.json {
		return found.printJSON(out)
	}
	return found.print(out, o.out)
}

// question is what the flags ask.
func (o planOptions) question() (q search.Question, err error) {
	p := plan.Default()
	q.Headroom = o.headroom
	if err := (trainOptions{model: o.model, given: func(flag string) bool { return flag == "model" }}).changeModel(&p); err != nil {
		return q, err
	}
	if o.cluster == "" {
		return q, fmt.Errorf("plan: there is no cluster to plan for; name one with --cluster: %s, or a file", document.Either(cluster.Presets()))
	}
	if p.Cluster, err = o.machine(); err != nil {
		return q, err
	}
	if q.Machine, err = cost.New(p.Cluster.Machine); err != nil {
		return q, err
	}
	if q.Profile, err = price.ProfileOf(o.framework); err != nil {
		return q, err
	}
	if err := o.workload(&p); err != nil {
		return q, err
	}
	q.Plan = p
	return q, nil
}

// machine is the cluster that a flag names.
func (o planOptions) machine() (c plan.Cluster, err error) {
	if o.nodes < 1 {
		return c, fmt.Errorf("plan: --nodes %d; use 1 or more", o.nodes)
	}
	if _, err := os.Stat(o.cluster); err == nil {
		text, err := readSmall(o.cluster)
		if err != nil {
			return c, fmt.Errorf("cluster: %w", err)
		}
		c.File = o.cluster
		c.Machine, err = cluster.Parse(text)
		return c, err
	}
	c.Preset, c.Nodes = o.cluster, o.nodes
	c.Machine, err = cluster.Preset(o.cluster, o.nodes)
	return c, err
}

// workload sets what a step and the run are made of.
func (o planOptions) workload(p *plan.Plan) error {
	if o.sequence < 0 || o.batch < 0 {
		return fmt.Errorf("plan: --sequence %d and --global-batch %d; use 1 or more, or 0 to have one chosen", o.sequence, o.batch)
	}
	w := &p.Workload
	if w.Sequence = o.sequence; w.Sequence == 0 {
		w.Sequence = min(p.Model.Config.Context, 8192)
	}
	if w.GlobalBatch = o.batch; w.GlobalBatch == 0 {
		devices := p.Cluster.Machine.Devices()
		w.GlobalBatch = max(1, (4<<20)/w.Sequence/devices) * devices
	}
	w.Tokens, w.Steps = 0, 1000
	if o.tokens != "" {
		var n float64
		if _, err := fmt.Sscanf(o.tokens, "%g", &n); err != nil || !(n >= 1 && n <= 1e18) {
			return fmt.Errorf("plan: --tokens %q; use a number such as 15e12", document.Clip(o.tokens))
		}
		w.Tokens, w.Steps = unit.Count(n), 0
	}
	p.Optimizer.Warmup = min(p.Optimizer.Warmup, p.Steps())
	return nil
}
