package flight_test

import (
	"strings"
	"testing"

	"carve/comm/flight"

	"github.com/google/go-cmp/cmp"
)

// operation is one of group 0 unless changed.
func operation(seq int, what string, state flight.State) flight.Operation {
	op, _, _ := strings.Cut(what, " ")
	return flight.Operation{Op: strings.ReplaceAll(op, "-", "_"), What: what, Seq: seq, Peer: flight.Nobody, State: state, Site: "nn.f (nn/f.go:1)"}
}

// paired moves an operation to the group of pairs.
func paired(o flight.Operation) flight.Operation {
	o.Group = 1
	return o
}

// world makes a record of ranks that are all in the group "all" and, in pairs, in the group "tp".
func world(programs ...[]flight.Operation) flight.Record {
	r := flight.Record{Version: flight.Version, Blamed: flight.Nobody, Limit: 2e9, Taken: 10e9}
	all := make([]int, len(programs))
	for i := range all {
		all[i] = i
	}
	for rank, program := range programs {
		k := flight.Rank{Rank: rank, Issued: len(program), Operations: program, Groups: []flight.Group{
			{Name: "all", Ranks: all, Sent: make([]int, len(all)), Received: make([]int, len(all))},
			{Name: "tp", Ranks: []int{rank &^ 1, rank | 1}, Sent: make([]int, 2), Received: make([]int, 2)},
		}}
		for _, o := range program {
			switch g := &k.Groups[o.Group]; {
			case o.Peer == flight.Nobody:
				g.Collectives++
			case o.Op == "send":
				g.Sent[o.Peer]++
			default:
				g.Received[o.Peer]++
			}
		}
		r.Ranks = append(r.Ranks, k)
	}
	return r
}

func TestDiagnose(t *testing.T) {
	type ops = []flight.Operation
	done, wait := flight.Finished, flight.Waiting
	reduce, gather := "all-reduce sum of fp32[8]", "all-gather of fp32[8]"
	message := func(op string, peer int, state flight.State) flight.Operation {
		o := operation(1, op+" of fp32[5]", state)
		o.Peer = peer
		return o
	}
	cases := []struct {
		name   string
		record flight.Record
		blamed int
		want   string // beginning of the report
	}{
		{
			"sleeping", world(ops{operation(1, reduce, done), operation(2, gather, wait)}, ops{operation(1, reduce, done), operation(2, gather, wait)}, ops{operation(1, reduce, done)}, ops{operation(1, reduce, done), operation(2, gather, wait)}), flight.Nobody,
			`operation 2 of group "all", all-gather of fp32[8], called at nn.f (nn/f.go:1): rank 2 did not arrive; ranks 0, 1, 3 waited for 10 s; rank 2 last did operation 1 of group "all", all-reduce sum of fp32[8] at nn.f (nn/f.go:1), finished 10 s before`,
		},
		{
			"chain", world(ops{paired(operation(1, gather, done)), operation(1, reduce, wait)}, ops{paired(operation(1, gather, done)), operation(1, reduce, wait)}, ops{paired(operation(1, gather, wait))}, ops{}), flight.Nobody,
			`operation 1 of group "tp", all-gather of fp32[8], called at nn.f (nn/f.go:1): rank 3 did not arrive; rank 2 waited for 10 s; rank 3 did nothing yet`,
		},
		{
			"circle", world(ops{operation(1, reduce, wait)}, ops{paired(operation(1, gather, wait))}, ops{paired(operation(1, gather, done)), operation(1, reduce, wait)}, ops{paired(operation(1, gather, done)), operation(1, reduce, wait)}), flight.Nobody,
			`operation 1 of group "tp", all-gather of fp32[8], called at nn.f (nn/f.go:1): rank 0 did not arrive; rank 1 waited for 10 s; rank 0 last did operation 1 of group "all"`,
		},
		{
			"mismatch", world(ops{operation(1, reduce, wait)}, ops{operation(1, gather, wait)}, ops{operation(1, reduce, wait)}, ops{operation(1, reduce, wait)}), flight.Nobody,
			`operation 1 of group "all", all-reduce sum of fp32[8], called at nn.f (nn/f.go:1): rank 1 called something else; ranks 0, 2, 3 waited for 10 s; rank 1 last did operation 1 of group "all", all-gather of fp32[8]`,
		},
		{
			"two that differ", world(ops{operation(1, reduce, wait)}, ops{operation(1, gather, wait)}), 1,
			`operation 1 of group "all", all-reduce sum of fp32[8], called at nn.f (nn/f.go:1): rank 1 called something else`,
		},
		{
			"message", world(ops{message("recv", 1, wait)}, ops{}), flight.Nobody,
			`operation 1 of group "all", recv of fp32[5], called at nn.f (nn/f.go:1): rank 1 did not arrive; rank 0 waited`,
		},
		{
			"stalled", world(ops{operation(1, reduce, wait)}, ops{operation(1, reduce, flight.Started)}), flight.Nobody,
			`operation 1 of group "all", all-reduce sum of fp32[8], called at nn.f (nn/f.go:1): rank 1 issued it but did not go on with it; rank 0 waited`,
		},
		{"alone", world(ops{operation(1, reduce, done)}, ops{operation(1, reduce, done)}), 1, "rank 1 failed; rank 1 last did operation 1"},
		{"own", world(ops{operation(1, reduce, done)}, ops{operation(2, reduce, wait)}), 1, `operation 2 of group "all", all-reduce sum of fp32[8], called at nn.f (nn/f.go:1): rank 1 failed`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.record.Blamed = c.blamed
			h, found := flight.Diagnose(c.record)
			if got := h.String(); !found || !strings.HasPrefix(got, c.want) {
				t.Errorf("%v\n%s\nwant\n%s", found, got, c.want)
			}
			text, err := flight.Encode(c.record)
			if err != nil {
				t.Fatal(err)
			}
			again, err := flight.Parse(text)
			if diff := cmp.Diff(c.record, again); err != nil || diff != "" {
				t.Errorf("written and read: %v\n%s", err, diff)
			}
		})
	}
}

// TestNothingWrong is the control: who waits for nobody in vain is not blamed.
func TestNothingWrong(t *testing.T) {
	reduce := "all-reduce sum of fp32[8]"
	r := world([]flight.Operation{operation(1, reduce, flight.Finished)}, []flight.Operation{operation(1, reduce, flight.Finished)})
	if h, found := flight.Diagnose(r); found {
		t.Errorf("blamed: %v", h)
	}
}

func TestMerge(t *testing.T) {
	whole := world([]flight.Operation{operation(1, "barrier", flight.Waiting)}, nil, nil)
	a, b := whole, whole
	a.Ranks, b.Ranks = whole.Ranks[1:2], []flight.Rank{whole.Ranks[0], whole.Ranks[2]}
	b.Blamed, b.Cause = 2, "why"
	got, err := flight.Merge(a, b)
	if err != nil || got.Blamed != 2 || got.Cause != "why" {
		t.Errorf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(whole.Ranks, got.Ranks); diff != "" {
		t.Error(diff)
	}
	if _, err := flight.Merge(a, a); err == nil || !strings.Contains(err.Error(), "two records of rank 1") {
		t.Errorf("one rank twice: %v", err)
	}
	if _, err := flight.Merge(); err == nil {
		t.Error("no record at all is one")
	}
}

func FuzzParse(f *testing.F) {
	text, err := flight.Encode(world([]flight.Operation{operation(1, "all-reduce sum of fp32[8]", flight.Waiting)}, nil))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	for _, seed := range []string{
		"", "{}", `{"version":1,"blamed":-1,"ranks":[{"rank":1},{"rank":0}]}`,
		`{"version":1,"blamed":7,"ranks":[{"rank":0,"issued":1,"groups":[{"name":"a","ranks":[0],"sent":[0],"received":[0]}],"operations":[{"group":3}]}]}`,
		`{"version":1,"ranks":[{"rank":0,"issued":9223372036854775807,"groups":[{"name":"a","ranks":[0,0],"sent":[0,0],"received":[0,0]}],"operations":[{"peer":0,"state":"waiting","op":"recv"}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := flight.Parse(data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "flight: ") {
				t.Fatalf("error without owner: %v", err)
			}
			return
		}
		h, _ := flight.Diagnose(r)
		_ = h.String()
	})
}
