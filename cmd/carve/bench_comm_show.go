package main

import (
	"fmt"
	"io"

	"carve/comm"
	"carve/comm/timing"
)

// row is a measured row as JSON has it.
func (b *commBench) row(r timing.Row) commRow {
	row := commRow{
		Op: timing.Name(r.Op), Ranks: r.Ranks, Bytes: int64(r.Bytes), DType: dtypeName(r.DType), Engine: engineLocal,
		Time: float64(r.Usual.Time) * 1e6, AlgBW: float64(r.AlgorithmBandwidth(r.Usual)) / 1e9, BusBW: float64(r.BusBandwidth(r.Usual)) / 1e9,
		Wrong: r.Usual.Wrong, Count: r.Count, RedOp: "none", Rounds: r.Usual.Rounds,
	}
	if r.Op.Reduces() {
		row.RedOp = "sum"
	}
	if s := r.InPlace; s != nil {
		row.InPlace = &commIn{float64(s.Time) * 1e6, float64(r.AlgorithmBandwidth(*s)) / 1e9, float64(r.BusBandwidth(*s)) / 1e9, s.Wrong}
	}
	if b.place != nil {
		row.Engine = engineEmulated
		if t, ok := b.theory(r); ok {
			row.Theory = &t
		}
	}
	return row
}

// theory is the formulas' time of a row in microseconds; false for messages around all ranks, which queue where they will.
func (b *commBench) theory(r timing.Row) (us float64, known bool) {
	op, known := r.Op.Collective()
	if !known || r.Op == comm.AllToAllV { // whose blocks are not known here
		return 0, false
	}
	bytes := float64(r.Bytes)
	_, cost := b.place.Best(op, bytes)
	if forced := b.emulate.Algorithm; forced != nil {
		if c, ok := b.place.Of(op, *forced, bytes); ok {
			cost, _ = b.place.Cost(op, c, bytes)
		}
	}
	return float64(cost) * b.links.scale * 1e6, true
}

// Lines of the table. Rows are printed as they are measured, so their widths are fixed.
const (
	commHead = "#%12s %13s %7s %7s %10s %8s %8s %6s %10s %8s %8s %6s"
	commLine = " %12d %13d %7s %7s %10s %8.2f %8.2f %6d"
)

// heading prints what comes.
func (b *commBench) heading(out io.Writer, op comm.Op) error {
	if b.json {
		return nil
	}
	where := fmt.Sprintf("%d ranks, engine %s", b.ranks, engineLocal)
	if a := b.emulate.Algorithm; a != nil {
		where = fmt.Sprintf("%s, as messages of algorithm %v", where, a)
	}
	if b.place != nil {
		where = fmt.Sprintf("%d ranks on the links of %s, time scale %v", b.ranks, b.links.cluster, b.links.scale)
	}
	_, err := fmt.Fprintf(out, "# %s: %s; left out of place, right in place\n"+commHead, timing.Name(op), where,
		"size", "count", "type", "redop", "time", "algbw", "busbw", "wrong", "time", "algbw", "busbw", "wrong")
	if b.place != nil {
		fmt.Fprintf(out, " %10s", "theory")
	}
	fmt.Fprintf(out, "\n"+commHead, "(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "")
	if b.place != nil {
		fmt.Fprintf(out, " %10s", "(us)")
	}
	fmt.Fprintln(out)
	return err
}

// print writes a row.
func (b *commBench) print(out io.Writer, r timing.Row) error {
	row := b.row(r)
	if b.json {
		return printJSON(out, row)
	}
	_, err := fmt.Fprintf(out, commLine, row.Bytes, row.Count, row.DType, row.RedOp, microseconds(row.Time), row.AlgBW, row.BusBW, row.Wrong)
	if in := row.InPlace; in != nil {
		fmt.Fprintf(out, " %10s %8.2f %8.2f %6d", microseconds(in.Time), in.AlgBW, in.BusBW, in.Wrong)
	} else {
		fmt.Fprintf(out, " %10s %8s %8s %6s", "-", "-", "-", "-")
	}
	if row.Theory != nil {
		fmt.Fprintf(out, " %10s", microseconds(*row.Theory))
	}
	fmt.Fprintln(out)
	return err
}

// microseconds prints with three digits or more.
func microseconds(us float64) string {
	if us >= 100 {
		return fmt.Sprintf("%.0f", us)
	}
	return fmt.Sprintf("%.2f", us)
}

// printFit writes the line through the times of an operation.
func (b *commBench) printFit(out io.Writer, rows []timing.Row) error {
	l, ok := timing.Fit(rows)
	if !ok || b.json && !b.fit {
		return nil
	}
	r := rows[0]
	f := fitLine{Latency: float64(l.Latency) * 1e6, PerByte: l.PerByte * 1e9, Residual: l.Residual}
	if l.PerByte > 0 {
		f.BusBW = r.Op.BusFactor(r.Ranks) / l.PerByte / 1e9
	}
	if b.json {
		return printJSON(out, commFit{timing.Name(r.Op), r.Ranks, dtypeName(r.DType), f})
	}
	_, err := fmt.Fprintf(out, "# fit: %s µs + size · %.4g ns/B (busbw %.2f GB/s), residual %.1f %%\n", microseconds(f.Latency), f.PerByte, f.BusBW, 100*f.Residual)
	return err
}
