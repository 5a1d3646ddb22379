package cluster

import (
	"errors"
	"fmt"
	"math"

	"carve/internal/document"
	"carve/unit"
)

// ThisMachine is the name of the cluster that is measured here, not described in advance.
const ThisMachine = "this-machine"

// Cluster is one kind of device and the levels of links between them.
type Cluster struct {
	Name   string
	Node   int // devices of one node, which share a host; at least 1
	Device Device
	Levels []Level // from the inside out, sizes ascending; the last holds every device
}

// Device is one accelerator, or one rank's share of a CPU.
type Device struct {
	Name      string
	Peak      Peaks
	Sustained Peaks // best published matrix product; zero where none is
	Memory    unit.Bytes
	Bandwidth unit.BytesPerSecond // of that memory
	Power     unit.Watts          // limit of board power; 0 when unknown
	Source    string              // of all these figures
}

// Peaks holds a rate of dense matrix products per number format; 0 is unknown or not supported.
type Peaks struct {
	FP64, FP32, BF16, FP8, FP4, INT8 unit.FLOPsPerSecond
}

// Level is a domain of links.
type Level struct {
	Name             string
	Size             int // devices in the domain
	Latency          unit.Seconds
	Bandwidth        unit.BytesPerSecond // per device and direction
	Oversubscription float64             // 1 is full bisection
	Source           string              // of bandwidth and latency
}

// Devices returns the number of devices, 1 without levels.
func (c Cluster) Devices() int {
	if len(c.Levels) == 0 {
		return 1
	}
	return c.Levels[len(c.Levels)-1].Size
}

// Sizes returns the sizes of the levels, for mesh.Span.
func (c Cluster) Sizes() []int {
	sizes := make([]int, len(c.Levels))
	for i, level := range c.Levels {
		sizes[i] = level.Size
	}
	return sizes
}

// Nodes returns the number of nodes, the last perhaps not whole.
func (c Cluster) Nodes() int { return (c.Devices() + c.Node - 1) / c.Node }

// Bounds of figures: far beyond any machine, so that a slip of units is noticed.
const (
	maxDevices = 1 << 24
	maxLevels  = 8
	maxRate    = 1e18 // FLOP/s or bytes/s of one device
)

// Validate returns every reason why c describes no cluster, joined, or nil.
func (c Cluster) Validate() error {
	v := validator{}
	v.within("node", float64(c.Node), 1, maxDevices)
	v.device(c.Device)
	if len(c.Levels) > maxLevels {
		v.fault("has %d levels; use at most %d", len(c.Levels), maxLevels)
		return errors.Join(v.faults...)
	}
	inner := 1
	for i, level := range c.Levels {
		v.level(i, level)
		if i > 0 && level.Size <= inner {
			v.fault("levels.%d.size %d is not above %d of the level inside; list levels from the inside out", i, level.Size, inner)
		}
		inner = level.Size
	}
	return errors.Join(v.faults...)
}

// validator collects faults.
type validator struct{ faults []error }

// fault records one fault.
func (v *validator) fault(format string, args ...any) {
	v.faults = append(v.faults, fmt.Errorf("cluster: "+format, args...))
}

// within checks that a figure lies in a range; NaN does not.
func (v *validator) within(name string, value, low, high float64) {
	if math.IsNaN(value) || value < low || value > high {
		text := document.FormatFloat
		v.fault("%s is %s; use %s to %s", name, text(value), text(low), text(high))
	}
}

// device checks the figures of a device.
func (v *validator) device(d Device) {
	v.peaks("peak", d.Peak)
	v.peaks("sustained", d.Sustained)
	if d.Peak.BF16 == 0 && d.Peak.FP32 == 0 {
		v.fault("device has no peak; give device.peak.bf16 or device.peak.fp32")
	}
	v.within("device.memory", float64(d.Memory), 1, 1e15)
	v.within("device.bandwidth", float64(d.Bandwidth), 1, maxRate)
	v.within("device.power", float64(d.Power), 0, 1e6)
}

// peaks checks a rate per format.
func (v *validator) peaks(name string, p Peaks) {
	for _, rate := range p.named() {
		v.within("device."+name+"."+rate.format, float64(*rate.value), 0, maxRate)
	}
}

// level checks the figures of one level.
func (v *validator) level(i int, l Level) {
	at := fmt.Sprintf("levels.%d.", i)
	v.within(at+"size", float64(l.Size), 1, maxDevices)
	v.within(at+"latency", float64(l.Latency), 0, 1)
	v.within(at+"bandwidth", float64(l.Bandwidth), 1, maxRate)
	v.within(at+"oversubscription", l.Oversubscription, 1, 1e3)
}

// rate is one entry of Peaks with its name.
type rate struct {
	format string
	value  *unit.FLOPsPerSecond
}

// named lists the entries of p in a fixed order.
func (p *Peaks) named() []rate {
	return []rate{
		{"fp64", &p.FP64},
		{"fp32", &p.FP32},
		{"bf16", &p.BF16},
		{"fp8", &p.FP8},
		{"fp4", &p.FP4},
		{"int8", &p.INT8},
	}
}
