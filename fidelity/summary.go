package fidelity

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"carve/price"
)

// Row is one figure of a run beside its price.
type Row struct {
	ID        string  `json:"id"`
	Kind      string  `json:"kind"` // "step_time", in seconds, or "memory", in bytes
	Predicted float64 `json:"predicted"`
	Measured  float64 `json:"measured"`
	Error     float64 `json:"error"` // predicted/measured - 1
	Counts    bool    `json:"counts"`
	Why       string  `json:"why,omitempty"` // it does not count, or has no price
	Source    string  `json:"source"`
	Device    string  `json:"device"`
	Family    string  `json:"family"`
	Framework string  `json:"framework"`

	weight float64
}

// Priced is a run with its price.
type Priced struct {
	Time   price.Time
	Memory price.Memory
	Rows   []Row
}

// Price prices one run with a book. A run that cannot be priced gives a row that says why.
func (ready *Ready) Price(b *Book) (p Priced) {
	r := ready.Run
	row := Row{ID: r.ID, Kind: "step_time", Source: r.Source.Key, Device: r.Cluster.GPU, Family: text(r.Model.Family), Framework: r.Profile(), weight: 1}
	if r.Derived.Seconds != nil {
		row.Measured = *r.Derived.Seconds
	}
	row.Counts, row.Why = r.Counts()
	var err error
	p.Time, p.Memory, err = ready.prices(b)
	if err != nil {
		row.Counts, row.Why = false, strings.TrimPrefix(err.Error(), "fidelity: "+r.ID+": ")
		p.Rows = append(p.Rows, row)
		return p
	}
	row.set(float64(p.Time.Step))
	p.Rows = append(p.Rows, row)
	if bytes := r.bytes(); bytes > 0 {
		m := row
		m.Kind, m.Measured = "memory", bytes
		m.Counts, m.Why = r.uses("memory_full"), ""
		if !m.Counts {
			m.Why = "its memory is not comparable"
		}
		if f, err := b.profile(ready.profile); err == nil {
			m.set(r.seen(p.Memory, f))
		}
		p.Rows = append(p.Rows, m)
	}
	return p
}

// set fills in a prediction.
func (r *Row) set(predicted float64) {
	r.Predicted = predicted
	if r.Measured > 0 {
		r.Error = predicted/r.Measured - 1
	}
}

// bytes is the measured peak; 0 for none.
func (r *Run) bytes() float64 {
	m := r.Measured
	if m.Peak == nil {
		return 0
	}
	if strings.Contains(text(m.Unit), "gib") {
		return *m.Peak * (1 << 30)
	}
	return *m.Peak * 1e9
}

// seen is what of a peak the measurement sees: tensors, or all that was taken from the device.
func (r *Run) seen(m price.Memory, f *price.Profile) float64 {
	scope := text(r.Measured.Scope)
	switch {
	case strings.Contains(scope, "nvidia-smi"):
		return float64(m.Peak)*f.Reserved + f.Context
	case strings.Contains(scope, "max reserved"):
		return float64(m.Peak) * f.Reserved
	}
	return float64(m.Peak)
}

// Summary is the errors of rows of a kind.
type Summary struct {
	Kind   string  `json:"kind"`
	By     string  `json:"by"`   // "all", "source", "device", "family" or "framework"
	Name   string  `json:"name"` // of the group
	Rows   int     `json:"rows"`
	Median float64 `json:"median"` // of the absolute errors, and so on
	P90    float64 `json:"p90"`
	Worst  float64 `json:"worst"`
	Bias   float64 `json:"bias"` // median of the errors with their signs
}

// Summarize gives the errors of the rows that count: of all, and by source, device, family and framework.
func Summarize(runs []Run, rows []Row) []Summary {
	weigh(runs, rows)
	var out []Summary
	for _, kind := range []string{"step_time", "memory"} {
		for _, by := range []string{"all", "source", "device", "family", "framework"} {
			groups := map[string][]Row{}
			for _, r := range rows {
				if r.Counts && r.Kind == kind {
					name := r.group(by)
					groups[name] = append(groups[name], r)
				}
			}
			var names []string
			for name := range groups {
				names = append(names, name)
			}
			slices.Sort(names)
			for _, name := range names {
				out = append(out, summary(kind, by, name, groups[name]))
			}
		}
	}
	return out
}

// weigh makes the rows of one configuration weigh as much as one.
func weigh(runs []Run, rows []Row) {
	groups, sizes := map[string]string{}, map[[2]string]float64{}
	for _, r := range runs {
		groups[r.ID] = r.Group
	}
	for _, r := range rows {
		if r.Counts {
			sizes[[2]string{r.Kind, groups[r.ID]}]++
		}
	}
	for i, r := range rows {
		rows[i].weight = 1
		if g := groups[r.ID]; g != "" && r.Counts {
			rows[i].weight = 1 / sizes[[2]string{r.Kind, g}]
		}
	}
}

// group is a row's group by a criterion.
func (r *Row) group(by string) string {
	switch by {
	case "source":
		return r.Source
	case "device":
		return r.Device
	case "family":
		return r.Family
	case "framework":
		return r.Framework
	}
	return "all"
}

// summary sums up one group.
func summary(kind, by, name string, rows []Row) Summary {
	s := Summary{Kind: kind, By: by, Name: name, Rows: len(rows)}
	absolute := func(r Row) float64 { return math.Abs(r.Error) }
	s.Median, s.P90, s.Worst = quantile(rows, 0.5, absolute), quantile(rows, 0.9, absolute), quantile(rows, 1, absolute)
	s.Bias = quantile(rows, 0.5, func(r Row) float64 { return r.Error })
	return s
}

// quantile is the least value that so much of the weight does not exceed.
func quantile(rows []Row, q float64, value func(Row) float64) float64 {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(value(a), value(b)) })
	total := 0.0
	for _, r := range rows {
		total += r.weight
	}
	sum := 0.0
	for _, r := range rows {
		if sum += r.weight; sum >= q*total*(1-1e-12) {
			return value(r)
		}
	}
	return value(rows[len(rows)-1])
}
