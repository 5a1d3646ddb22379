package cost

import (
	"errors"
	"fmt"

	"carve/cluster"
	"carve/tensor"
	"carve/unit"
)

// Machine is a cluster and what its devices reach.
type Machine struct {
	Cluster   cluster.Cluster
	Constants Constants
	Known     bool // whether the constants are of this kind of device
	// Congestion is how the rate of outer links falls with the domains that a group spans: as their number to this power. 0 is a
	// network where others do not matter.
	Congestion float64
}

// New finds the constants of a cluster's device. A cluster without figures, such as this-machine before it was measured, is an
// error.
func New(c cluster.Cluster) (Machine, error) {
	if c.Node < 1 {
		return Machine{}, errors.New("cost: the cluster has no figures; measure this machine with carve bench comm --save, or use a preset such as dgx-h100, or a file")
	}
	constants, known, err := ConstantsOf(c.Device.Name)
	if err != nil {
		return Machine{}, err
	}
	return Machine{Cluster: c, Constants: constants, Known: known}, nil
}

// Peak is the data sheet's rate of products of a dtype. Where a sheet has none: fp32 runs at half the rate of bf16 (as
// tf32 does), fp64 at a half of that.
func (m *Machine) Peak(d tensor.DType) unit.FLOPsPerSecond {
	p := m.Cluster.Device.Peak
	switch d {
	case tensor.BF16:
		if p.BF16 > 0 {
			return p.BF16
		}
		return p.FP32
	case tensor.FP32, tensor.Int32:
		if p.FP32 > 0 {
			return p.FP32
		}
		return p.BF16 / 2
	case tensor.FP64:
		if p.FP64 > 0 {
			return p.FP64
		}
		return m.Peak(tensor.FP32) / 2
	}
	panic(fmt.Sprintf("cost: dtype %v is not known", d))
}

// Memory is the time to move bytes between the device and its memory.
func (m *Machine) Memory(bytes unit.Bytes) unit.Seconds {
	return unit.Seconds(float64(bytes) / (m.Constants.Bandwidth * float64(m.Cluster.Device.Bandwidth)))
}

// Operation is the time of a recorded operation.
func (m *Machine) Operation(o tensor.Operation) unit.Seconds {
	switch o.Kind {
	case tensor.OpMatMul:
		return m.Product(Product{float64(o.Dims[0]), float64(o.Dims[1]), float64(o.Dims[2]), m.Peak(o.DType)}, o.Moved())
	case tensor.OpAttention:
		return m.Attention(o.FLOPs, m.Constants.Attention, m.Peak(o.DType), o.Moved())
	case tensor.OpAttentionBackward:
		return m.Attention(o.FLOPs, m.Constants.AttentionBackward, m.Peak(o.DType), o.Moved())
	default:
		return m.Memory(o.Moved()) + m.Constants.Launch
	}
}
