package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"carve/cluster"
	"carve/comm"
	"carve/comm/timing"
	"carve/machine"
	"carve/tensor"
	"carve/unit"
)

// saveMachine measures what a cluster description holds, and keeps it.
func (b *commBench) saveMachine(ctx context.Context, out io.Writer) error {
	c, err := b.measureMachine(ctx)
	if err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("the measurement describes no machine: %w; run it again on a quiet machine", err)
	}
	path := thisMachinePath(b.cache)
	if err := replaceFile(path, cluster.Encode(c)); err != nil {
		return fmt.Errorf("keeping the measurement: %w; choose another folder with --cache", err)
	}
	if b.json {
		return nil
	}
	l := c.Levels[0]
	_, err = fmt.Fprintf(out, "saved %s: %d ranks, messages %v + bytes / %v, memory %v, fp32 products %v of %v a rank\n",
		path, l.Size, l.Latency, l.Bandwidth, c.Device.Bandwidth, c.Device.Sustained.FP32, c.Device.Peak.FP32)
	return err
}

// measureMachine describes this machine as one node whose devices are its ranks, each with its share of cores and memory.
func (b *commBench) measureMachine(ctx context.Context) (cluster.Cluster, error) {
	const budget = 200 * time.Millisecond
	if b.ranks < 2 {
		return cluster.Cluster{}, badInput(errors.New("--save with 1 rank measures no link; use 2 ranks or more"))
	}
	threads := max(1, runtime.GOMAXPROCS(0)/b.ranks)
	share := float64(min(b.ranks*threads, runtime.GOMAXPROCS(0))) / float64(b.ranks) // cores of a rank
	source := fmt.Sprintf("measured by carve bench comm --save on %s", time.Now().UTC().Format(time.DateOnly))
	ceiling := tensor.MeasureCeiling(budget)
	d := cluster.Device{Name: machine.ReadCPU().Model, Source: source}
	rates := func(of func(tensor.DType) unit.FLOPsPerSecond) cluster.Peaks {
		at := func(t tensor.DType) unit.FLOPsPerSecond { return of(t) * unit.FLOPsPerSecond(share) }
		return cluster.Peaks{FP64: at(tensor.FP64), FP32: at(tensor.FP32), BF16: at(tensor.BF16)}
	}
	d.Peak = rates(ceiling.Of)
	d.Sustained = rates(func(t tensor.DType) unit.FLOPsPerSecond {
		return tensor.Product{M: 1024, N: 1024, K: 1024, DType: t, Threads: 1}.Measure(budget)
	})
	memory := tensor.MeasureBandwidth(runtime.GOMAXPROCS(0), 2*budget)
	d.Bandwidth = memory.Copy / unit.BytesPerSecond(b.ranks)
	d.Memory = machine.ReadMemory().Total / unit.Bytes(b.ranks)
	line, err := b.measureLinks(ctx)
	if err != nil {
		return cluster.Cluster{}, err
	}
	return cluster.Cluster{
		Name: cluster.ThisMachine, Node: b.ranks, Device: d,
		Levels: []cluster.Level{{
			Name: "memory", Size: b.ranks, Latency: line.Latency, Bandwidth: unit.BytesPerSecond(1 / line.PerByte), Oversubscription: 1, Source: source,
		}},
	}, nil
}

// measureLinks fits messages around the ranks, of sizes beyond the caches as well.
func (b *commBench) measureLinks(ctx context.Context) (timing.Line, error) {
	o := timing.Options{
		Ops: []comm.Op{comm.Send}, DType: tensor.FP32, Time: b.time,
		Sizes: []unit.Bytes{8, 4 * unit.KiB, 64 * unit.KiB, unit.MiB, 16 * unit.MiB},
	}
	var rows []timing.Row
	if err := b.inWorld(ctx, o, func(r timing.Row) error {
		rows = append(rows, r)
		return nil
	}); err != nil {
		return timing.Line{}, err
	}
	line, ok := timing.Fit(rows)
	if !ok || line.PerByte <= 0 {
		return line, errors.New("no line fits the times of messages; run it again on a quiet machine")
	}
	return line, nil
}

// replaceFile writes a file by a rename, so that a crash leaves the old or the new one.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error that counts is the first
	}
	return err
}
