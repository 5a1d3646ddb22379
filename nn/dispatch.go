package nn

import (
	"carve/comm"
	"carve/tensor"
)

// dispatch is where the rows of one micro-batch went: from N rows here to A slots, one for each choice, sorted by expert, and
// to R rows of this rank's own experts, sorted by expert, then by the rank that sent them, then as they were there.
//
//	           forth                              back
//	gather     slot i is row from[i]              row from[i] gets slot i added
//	exchange   slots to the ranks of the experts  and back
//	regroup    by expert                          by rank
//
// It lives as long as the micro-batch: nothing of it is shared with another one under way.
type dispatch struct {
	at, from       *tensor.Tensor // int32 [N k]: slot of each choice; int32 [N·k]: row of each slot
	regroup, order *tensor.Tensor // int32 [R]: the received row of each row by expert, and the inverse; nil where equal
	slots, rows    int            // A, R
	counts         []int          // slots of each of the E experts
	chosen         []int          // choices of each of them, also those that were left out
	own            []int          // rows of each of this rank's experts

	incoming           []int // rows by sending rank and own expert
	sendRows, recvRows []int // rows to and from each rank of the axis
	send, recv         []int // elements of a call; the call copies them
}

// free gives the memory back; the lists stay.
func (d *dispatch) free() {
	for _, t := range [...]*tensor.Tensor{d.at, d.from, d.regroup, d.order} {
		t.Free()
	}
	d.at, d.from, d.regroup, d.order = nil, nil, nil, nil
}

// deal gives every choice its slot, but for those that admit leaves out, and returns the slots' gates.
func (d *dispatch) deal(r *Rank, s routes, experts int, admit admission) (gates *tensor.Tensor) {
	n := s.choice.Len()
	d.at = r.Arena.New(tensor.Activation, tensor.Int32, s.choice.Rows(), s.choice.Cols())
	d.from = r.Arena.New(tensor.Activation, tensor.Int32, n)
	gates = r.statistics(n, 1)
	both := r.Arena.New(tensor.Workspace, tensor.Int32, 2, experts)
	counts, chosen := both.RowRange(0, 1), both.RowRange(1, 2)
	admit.decide(r, d.at, s)
	r.Dev.Deal(tensor.Deal{
		Choice: s.choice, Gate: s.gate, At: d.at, From: d.from, Sorted: gates, Counts: counts, Chosen: chosen,
	})
	d.counts, d.chosen = numbers(d.counts, counts, n), numbers(d.chosen, chosen, n)
	d.slots = sum(d.counts)
	for _, t := range [...]*tensor.Tensor{counts, chosen, both} {
		t.Free()
	}
	return shortened(r, gates, d.slots)
}

// shortened is the first rows of t, which it takes over.
func shortened(r *Rank, t *tensor.Tensor, rows int) *tensor.Tensor {
	if t.Rows() == rows {
		return t
	}
	part, view := r.statistics(rows, t.Cols()), t.RowRange(0, rows)
	r.Dev.Copy(part, view)
	view.Free()
	t.Free()
	return part
}

// numbers are the elements of an int32 tensor, in a list that is used again. A device that only records shapes has
// none: there total is dealt out evenly.
func numbers(list []int, t *tensor.Tensor, total int) []int {
	list = resized(list, t.Len())
	for i := range list {
		if t.Meta() {
			list[i] = total*(i+1)/len(list) - total*i/len(list)
			continue
		}
		list[i] = int(t.I32()[i])
	}
	return list
}

// resized is a list of n numbers, old or new.
func resized(list []int, n int) []int {
	if cap(list) < n {
		return make([]int, n)
	}
	return list[:n]
}

func sum(list []int) (s int) {
	for _, v := range list {
		s += v
	}
	return s
}

// meet tells every rank of the axis how many rows its experts get from here, and finds out what comes.
func (d *dispatch) meet(r *Rank, g *comm.Group) {
	ranks := degree(g)
	if ranks == 1 {
		d.own, d.rows = append(d.own[:0], d.counts...), d.slots
		return
	}
	experts := len(d.counts) / ranks
	counts := r.Arena.New(tensor.Communication, tensor.Int32, 2*len(d.counts))
	defer counts.Free()
	out, in := counts.Slice(0, len(d.counts)), counts.Slice(len(d.counts), counts.Len())
	defer out.Free()
	defer in.Free()
	if !counts.Meta() {
		for i, n := range d.counts {
			out.I32()[i] = int32(n)
		}
	}
	Must(g.AllToAll(in, out))
	d.incoming = numbers(d.incoming, in, d.slots)
	d.sendRows, d.recvRows = resized(d.sendRows, ranks), resized(d.recvRows, ranks)
	d.own = resized(d.own, experts)
	clear(d.own)
	for i := range ranks {
		mine := d.incoming[i*experts : (i+1)*experts]
		d.sendRows[i], d.recvRows[i] = sum(d.counts[i*experts:(i+1)*experts]), sum(mine)
		for e, n := range mine {
			d.own[e] += n
		}
	}
	d.rows = sum(d.own)
	if experts > 1 {
		d.sort(r, experts)
	}
}

// sort makes the lists that bring received rows from the order of ranks into that of experts, and back.
func (d *dispatch) sort(r *Rank, experts int) {
	d.regroup = r.Arena.New(tensor.Activation, tensor.Int32, d.rows)
	d.order = r.Arena.New(tensor.Activation, tensor.Int32, d.rows)
	if d.regroup.Meta() {
		return
	}
	regroup, order := d.regroup.I32(), d.order.I32()
	row := 0
	for e := range experts {
		start := 0 // of the rows of a rank and expert
		for i, n := range d.incoming {
			if i%experts == e {
				for at := start; at < start+n; at++ {
					regroup[row], order[at] = int32(at), int32(row)
					row++
				}
			}
			start += n
		}
	}
}

// exchange is an all-to-all of rows under way.
type exchange struct {
	work     comm.Work
	src, dst *tensor.Tensor
}

// wait returns the received rows.
func (x *exchange) wait() *tensor.Tensor {
	Must(x.work.Wait())
	if x.src != x.dst {
		x.src.Free()
	}
	return x.dst
}

// forth starts to send the slots of src [A C], or more of them, to the experts' ranks. It takes over src.
func (d *dispatch) forth(r *Rank, g *comm.Group, src *tensor.Tensor) exchange {
	if degree(g) == 1 {
		return exchange{src: src, dst: src}
	}
	kind := tensor.Communication
	if d.regroup == nil {
		kind = tensor.Activation // it stays as it comes
	}
	return d.start(g, src, r.Arena.New(kind, src.DType(), d.rows, src.Cols()), d.sendRows, d.recvRows)
}

// gather is the slots' rows of x [N H], [A H], to be sent over g.
func (d *dispatch) gather(r *Rank, g *comm.Group, x *tensor.Tensor) *tensor.Tensor {
	from, kind := d.from.Slice(0, d.slots), tensor.Communication
	defer from.Free()
	if degree(g) == 1 {
		kind = tensor.Activation // it stays
	}
	y := r.Arena.New(kind, x.DType(), d.slots, x.Cols())
	r.Dev.Embed(y, x, from, 0)
	return y
}

// scatter adds every slot of x [A H] to its row of y [N H].
func (d *dispatch) scatter(r *Rank, y, x *tensor.Tensor) {
	from := d.from.Slice(0, d.slots)
	r.Dev.EmbedBackward(y, x, from, 0)
	from.Free()
}

// arrived waits for what forth sent, and puts the rows in the order of the experts.
func (d *dispatch) arrived(r *Rank, x exchange) *tensor.Tensor {
	return rearranged(r, tensor.Activation, x.wait(), d.regroup)
}

// back starts to send the results src [R C] of the experts to where the rows came from. It takes over src.
func (d *dispatch) back(r *Rank, g *comm.Group, src *tensor.Tensor) exchange {
	if degree(g) == 1 {
		return exchange{src: src, dst: src}
	}
	src = rearranged(r, tensor.Communication, src, d.order)
	return d.start(g, src, r.communication(src.DType(), d.slots, src.Cols()), d.recvRows, d.sendRows)
}

// start starts to exchange rows.
func (d *dispatch) start(g *comm.Group, src, dst *tensor.Tensor, send, recv []int) exchange {
	d.send, d.recv = resized(d.send, len(send)), resized(d.recv, len(recv))
	for i := range send {
		d.send[i], d.recv[i] = send[i]*src.Cols(), recv[i]*src.Cols()
	}
	return exchange{work: g.AllToAllVStart(dst, src, d.send, d.recv), src: src, dst: dst}
}

// rearranged is the rows of t [R C] in another order, row i being row list[i]. It takes over t. No list means the same
// order.
func rearranged(r *Rank, c tensor.Category, t, list *tensor.Tensor) *tensor.Tensor {
	if list == nil {
		return t
	}
	y := r.Arena.New(c, t.DType(), list.Len(), t.Cols())
	r.Dev.Embed(y, t, list, 0)
	t.Free()
	return y
}
