package ledger

import (
	"strconv"
	"strings"

	"carve/record"
	"carve/tensor"
	"carve/unit"
)

// watch keeps the life of every tensor of a rank, so that those alive at the peak can be told afterwards.
type watch struct {
	record.Nothing
	kinds   map[kind]int // index in the order of the first allocation
	order   []kind
	lives   []life // by the allocation's number, from 1
	modules map[string]string
	moments []record.Moment // distinct ones, in order
}

// kind is what makes tensors of one line, but for their lifetime.
type kind struct {
	category tensor.Category
	dtype    tensor.DType
	dims     [tensor.MaxDims]int
	module   string
}

// life is one tensor: its kind, when it was taken, and after how many allocations it was given back; 0 for never.
type life struct {
	kind     int32
	born     int32 // index of moments
	died     int32 // index of moments
	followed int32
	bytes    unit.Bytes
}

func newWatch() *watch { return &watch{kinds: map[kind]int{}, modules: map[string]string{}} }

// Took implements [record.Sink].
func (w *watch) Took(m record.Moment, a tensor.Allocation) {
	k := kind{a.Category, a.DType, a.Dims, w.module(a.Owner)}
	i, ok := w.kinds[k]
	if !ok {
		i = len(w.order)
		w.kinds[k] = i
		w.order = append(w.order, k)
	}
	w.lives = append(w.lives, life{kind: int32(i), born: w.moment(m), bytes: a.Bytes})
}

// Gave implements [record.Sink].
func (w *watch) Gave(m record.Moment, a tensor.Allocation) {
	l := &w.lives[a.Number-1]
	l.died, l.followed = w.moment(m), int32(len(w.lives))
}

// moment is the index of a moment.
func (w *watch) moment(m record.Moment) int32 {
	m.Ops = 0
	if n := len(w.moments); n == 0 || w.moments[n-1] != m {
		w.moments = append(w.moments, m)
	}
	return int32(len(w.moments) - 1)
}

// alive calls f for every tensor in use right after the given allocation.
func (w *watch) alive(event int, f func(k kind, l Lifetime, bytes unit.Bytes)) {
	for _, x := range w.lives[:event] {
		if x.followed > 0 && int(x.followed) < event {
			continue
		}
		l := Run
		if x.followed > 0 {
			l = between(w.moments[x.born], w.moments[x.died])
		}
		f(w.order[x.kind], l, x.bytes)
	}
}

// module is an owner with * for numbers: "model.layers.*.mlp".
func (w *watch) module(owner string) string {
	name, ok := w.modules[owner]
	if !ok {
		parts := strings.Split(owner, ".")
		for i, p := range parts {
			if _, err := strconv.Atoi(p); err == nil {
				parts[i] = "*"
			}
		}
		name = strings.Join(parts, ".")
		w.modules[owner] = name
	}
	return name
}
