package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"carve/cluster"
	"carve/comm"
	"carve/plan"

	"github.com/spf13/cobra"
)

// linkOptions are the flags of a network that is emulated.
type linkOptions struct {
	cluster string
	scale   float64
}

func (o *linkOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.cluster, "emulate", "", "cluster whose links are emulated between the ranks: a preset, or the path of a description")
	f.Float64Var(&o.scale, "time-scale", 1, "how much longer everything takes on the emulated links")
	completeWords(cmd, "emulate", append(cluster.Presets(), cluster.ThisMachine)...)
}

// emulated are the links that the flags describe; none without --emulate.
func (o *linkOptions) emulated(cache string) (comm.EmulateOptions, error) {
	if !(o.scale > 0) || math.IsInf(o.scale, 0) {
		return comm.EmulateOptions{}, fmt.Errorf("--time-scale %v; use a number above 0", o.scale)
	}
	if o.cluster == "" {
		if o.scale != 1 {
			return comm.EmulateOptions{}, errors.New("--time-scale without --emulate; name a cluster, such as --emulate dgx-h100")
		}
		return comm.EmulateOptions{}, nil
	}
	c, err := findCluster(o.cluster, cache)
	if err == nil && len(c.Levels) == 0 {
		err = fmt.Errorf("cluster: %s has no links between devices; describe levels", o.cluster)
	}
	return comm.EmulateOptions{Levels: c.Levels, Scale: o.scale}, err
}

// findCluster is a preset with as many nodes as it may have, the measurement of this machine, or a file.
func findCluster(name, cache string) (cluster.Cluster, error) {
	if name == cluster.ThisMachine {
		text, err := readThisMachine(cache)
		if err != nil {
			return cluster.Cluster{}, err
		}
		if text == nil {
			return cluster.Cluster{}, errors.New("cluster: this machine was not measured; run: carve bench comm --save")
		}
		return plan.ParseCluster(text)
	}
	if !strings.ContainsAny(name, `/\`) && filepath.Ext(name) == "" {
		return cluster.Largest(name)
	}
	text, err := readSmall(name)
	if err != nil {
		return cluster.Cluster{}, fmt.Errorf("cluster: %w; name a preset or an existing file", err)
	}
	c, err := plan.ParseCluster(text)
	if err != nil {
		return c, inFile(name, err)
	}
	return c, nil
}

// thisMachinePath is where the measurement of this machine is kept.
func thisMachinePath(cache string) string { return filepath.Join(cache, cluster.ThisMachine+".json") }

// readThisMachine reads the measurement of this machine; nil when there is none.
func readThisMachine(cache string) ([]byte, error) {
	text, err := os.ReadFile(thisMachinePath(cache))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return text, nil
}
