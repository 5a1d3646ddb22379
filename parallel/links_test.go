package parallel_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"carve/cluster"
	"carve/comm"
	"carve/nn"
	"carve/parallel"
	"carve/plan"
	"carve/tensor"
	"carve/trace"
	"carve/unit"
)

// slowDevice takes a millisecond of a bubble's time for every matrix product, and none for anything else.
type slowDevice struct{ tensor.Device }

func (d slowDevice) MatMul(op tensor.MatMul) {
	d.Device.MatMul(op)
	<-time.After(time.Millisecond)
}

// linked is what a run on emulated links has left.
type linked struct {
	exposed unit.Seconds // the longest that communication kept a rank waiting
	elapsed time.Duration
	loss    []float64
}

// onLinks runs a plan with a slow device and links of 20 µs and so many bytes a second, in the time of a bubble.
func onLinks(t *testing.T, text string, bandwidth unit.BytesPerSecond) (out linked) {
	t.Helper()
	tensor.NewReducer() // measures the processor, which needs a clock that goes on
	p, err := plan.Load([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		n, start := p.Layout.World(), time.Now()
		world := comm.NewLocal(n, comm.LocalOptions{})
		net, err := comm.NewEmulated(n, comm.EmulateOptions{
			Levels: []cluster.Level{{Size: n, Latency: 20e-6, Bandwidth: bandwidth, Oversubscription: 1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ends, engines := make([]comm.Endpoint, n), make([]*parallel.Engine, n)
		for i := range ends {
			ends[i] = comm.Observe(net.Emulate(world.Rank(i)), comm.ObserveOptions{Clock: func() trace.Tick { return trace.Tick(time.Since(start)) }})
		}
		var mu sync.Mutex // guards out
		result := outcome{loss: make([]float64, p.Steps()), params: map[string][]float64{}}
		err = comm.Run(t.Context(), ends, func(end comm.Endpoint) error {
			e, err := parallel.New(end, p, parallel.Options{
				Device: func(a *tensor.Arena) tensor.Device { return slowDevice{tensor.NewCPU(a, 1)} },
			})
			engines[end.Rank()] = e
			if err != nil {
				return err
			}
			var failed error
			if err := nn.Guard(func() { failed = steps(e, p, &result, &mu) }); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			out.exposed = max(out.exposed, end.(*comm.Observed).Waited())
			return failed
		})
		for _, e := range engines {
			if e != nil {
				e.Close()
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		out.elapsed, out.loss = time.Since(start), result.loss
	})
	return out
}

// TestOverlapIsReal holds that what is hidden is hidden: on links whose messages take their time, the modes that overlap leave less
// communication exposed and end sooner than those that do not, and compute the same to the bit.
func TestOverlapIsReal(t *testing.T) {
	cases := []struct {
		name         string
		base         string
		naive, hides string
		bandwidth    unit.BytesPerSecond
		most         float64 // of the naive exposed time
	}{
		{"buckets", small, "{dp: 2, zero: {stage: 0, reduce: naive}}", "{dp: 2, zero: {stage: 0, bucket: 4KiB}}", 2e6, 0.5},
		{"buckets of shards", small, "{dp: 2, zero: {stage: 2, reduce: naive}}", "{dp: 2, zero: {stage: 2, bucket: 4KiB}}", 2e6, 0.8},
		{"prefetch", small, "{dp: 2, zero: {stage: 3, prefetch: 0}}", "{dp: 2, zero: {stage: 3, prefetch: 1}}", 4e6, 0.7},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			naive, hides := onLinks(t, c.base+"layout: "+c.naive+"\n", c.bandwidth), onLinks(t, c.base+"layout: "+c.hides+"\n", c.bandwidth)
			t.Logf("naive %v exposed of %v, overlapped %v of %v", naive.exposed, naive.elapsed, hides.exposed, hides.elapsed)
			if float64(hides.exposed) > c.most*float64(naive.exposed) || hides.elapsed >= naive.elapsed {
				t.Errorf("naive %v exposed of %v, overlapped %v of %v", naive.exposed, naive.elapsed, hides.exposed, hides.elapsed)
			}
			if got, want := fmt.Sprint(hides.loss), fmt.Sprint(naive.loss); got != want {
				t.Errorf("losses %s, not %s", got, want)
			}
		})
	}
}

// TestPairsHideDispatch holds that the experts' messages of one micro-batch hide behind another: slow links cost the schedule whose
// forward and backward run as a pair less time than the one that runs them one after the other.
func TestPairsHideDispatch(t *testing.T) {
	const slow, fast = 2e6, 1e15
	mixed := strings.Replace(small, "architecture: llama,", "architecture: mixtral, experts: {count: 8, per_token: 2, ffn: 12},", 1)
	cost := func(schedule string) time.Duration {
		text := mixed + "layout: {ep: 2, pp: 2, pipeline: {schedule: " + schedule + "}}\n"
		return onLinks(t, text, slow).elapsed - onLinks(t, text, fast).elapsed
	}
	apart, paired := cost("zb-v"), cost("dualpipe-v")
	t.Logf("slow links cost %v without pairs, %v with them", apart, paired)
	if paired > apart*4/5 {
		t.Errorf("slow links cost %v without pairs, %v with them", apart, paired)
	}
}
