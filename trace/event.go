package trace

import "strconv"

// event writes one event, and the arrow of a message.
func (w *Writer) event(r *Recorder, e *event) {
	if len(w.buf) > cap(w.buf)/2 {
		_ = w.flush() // Write returns the error, which stays
	}
	switch e.kind {
	case span:
		w.span(r, e)
	case mark:
		w.head("i", r.rank, e)
		w.text(`,"s":"t"}`)
	case count:
		w.line("C", r.rank)
		w.text(`,`)
		w.key("name")
		w.string(e.Name)
		w.text(`,"ts":`)
		w.ticks(e.Start)
		w.text(`,"args":{"value":`)
		w.int(e.Args[0].Value)
		w.text(`}}`)
	}
}

// head writes what spans and marks have in common.
func (w *Writer) head(phase string, rank int, e *event) {
	w.line(phase, rank)
	w.text(`,"tid":`)
	w.int(int64(e.Lane))
	w.text(`,"cat":"`)
	w.text(w.category(e))
	w.text(`",`)
	w.key("name")
	if w.dialect == Profiler && e.collective != None {
		w.string("nccl:" + e.Name)
	} else {
		w.string(e.Name)
	}
	w.text(`,"ts":`)
	w.ticks(e.Start)
}

// category is the category in the writer's dialect.
func (w *Writer) category(e *event) string {
	if w.dialect == Profiler {
		switch e.Category {
		case Compute, Comm:
			return "kernel"
		case Data, Checkpoint, Step:
			return "user_annotation"
		}
	}
	return e.Category.String()
}

func (w *Writer) span(r *Recorder, e *event) {
	w.head("X", r.rank, e)
	w.text(`,"dur":`)
	w.ticks(max(0, e.End-e.Start))
	w.text(`,"args":{"stream":`)
	w.int(int64(e.Lane))
	for _, a := range e.Args {
		if a.Key != "" {
			w.argument(a.Key)
			w.int(a.Value)
		}
	}
	if e.collective == None {
		w.text(`}}`)
		return
	}
	m := &r.collectives[e.collective]
	w.collective(r, m)
	w.text(`}}`)
	w.flow(r, e, m)
}

// collective writes the arguments of a collective, named as the PyTorch profiler names them.
func (w *Writer) collective(r *Recorder, m *moved) {
	g := r.groups[m.Group]
	w.argument("Collective name")
	w.string(m.Name)
	w.argument("dtype")
	w.string(m.DType)
	w.number("In msg nelems", m.In)
	w.number("Out msg nelems", m.Out)
	w.number("Group size", len(g.ranks))
	w.argument("In split size")
	w.buf = list(w.buf, r.splits[m.split:][:m.ins])
	w.argument("Out split size")
	w.buf = list(w.buf, r.splits[m.split+m.ins:][:m.outs])
	w.argument("Process Group Name")
	w.string(g.name)
	w.argument("Process Group Description")
	w.string(g.name)
	w.argument("Process Group Ranks")
	w.buf = list(w.buf, g.ranks)
	w.number("Rank", r.rank)
	if m.Src != None {
		w.number("Src Rank", m.Src)
	}
	if m.Dst != None {
		w.number("Dst Rank", m.Dst)
	}
	w.number("Seq", m.Seq)
}

// flow writes this side's end of the arrow of a message: from the start of the send to the end of the receive.
func (w *Writer) flow(r *Recorder, e *event, m *moved) {
	if m.Src == None || m.Dst == None {
		return
	}
	phase, at, tail := "s", e.Start, `"}`
	if m.Dst == r.rank {
		phase, at, tail = "f", e.End, `","bp":"e"}`
	}
	w.line(phase, r.rank)
	w.text(`,"tid":`)
	w.int(int64(e.Lane))
	w.text(`,"cat":"comm","name":"message","ts":`)
	w.ticks(at)
	w.text(`,"id":"`)
	w.buf = appendEscaped(w.buf, r.groups[m.Group].name)
	w.buf = append(w.buf, ' ')
	w.int(int64(m.Src))
	w.buf = append(w.buf, '>')
	w.int(int64(m.Dst))
	w.buf = append(w.buf, ' ')
	w.int(int64(m.Seq))
	w.text(tail)
}

func (w *Writer) text(s string) { w.buf = append(w.buf, s...) }
func (w *Writer) int(n int64)   { w.buf = strconv.AppendInt(w.buf, n, 10) }

// string writes a JSON string.
func (w *Writer) string(s string) {
	w.buf = append(w.buf, '"')
	w.buf = appendEscaped(w.buf, s)
	w.buf = append(w.buf, '"')
}

// key writes the key of an object's member.
func (w *Writer) key(k string) {
	w.string(k)
	w.buf = append(w.buf, ':')
}

// argument writes the key of a further member.
func (w *Writer) argument(k string) {
	w.buf = append(w.buf, ',')
	w.key(k)
}

func (w *Writer) number(k string, n int) {
	w.argument(k)
	w.int(int64(n))
}

// ticks writes nanoseconds as microseconds with three decimals.
func (w *Writer) ticks(t Tick) {
	if t < 0 {
		w.buf = append(w.buf, '-')
		t = -t
	}
	w.int(int64(t / 1000))
	ns := t % 1000
	w.buf = append(w.buf, '.', byte('0'+ns/100), byte('0'+ns/10%10), byte('0'+ns%10))
}
