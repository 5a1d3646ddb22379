package verify_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"carve/verify"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// metrics writes steps as train does, with other events between.
func metrics(loss ...float64) string {
	var b strings.Builder
	for i, v := range loss {
		fmt.Fprintf(&b, `{"event":"step","step":%d,"loss":%v,"grad_norm":%v,"mfu":null}`+"\n", i+1, v, 2*v)
		b.WriteString(`{"event":"validation","step":1,"val_loss":1.5}` + "\n")
	}
	return b.String()
}

func curve(t *testing.T, text string) verify.Curve {
	t.Helper()
	c, err := verify.ReadCurve(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCompareCurves(t *testing.T) {
	a := curve(t, metrics(4, 3, 2, 1))
	b := curve(t, metrics(4, 3.5, 1.75, 1)+`{"event":"step","step":9,"loss":7,"grad_norm":1}`+"\n"+`{"event":"st`)
	loss, norm, err := verify.CompareCurves(a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := verify.Difference{Steps: 4, Mean: 0.0625, Error: 0.1875, Max: 0.5, MaxStep: 2, Relative: 0.5 / 3, Final: 0}
	near := cmpopts.EquateApprox(0, 1e-12)
	if diff := cmp.Diff(want, loss, near); diff != "" {
		t.Error(diff)
	}
	want.Mean, want.Error, want.Max = 0.125, 0.375, 1
	if diff := cmp.Diff(want, norm, near); diff != "" {
		t.Error(diff)
	}
	if _, _, err := verify.CompareCurves(a, curve(t, `{"event":"step","step":9,"loss":7,"grad_norm":1}`+"\n")); err == nil {
		t.Error("runs without a common step are compared")
	}
}

// TestBatchError holds the standard error of independent differences to what their deviation says, and wants more where neighbours
// depend on each other.
func TestBatchError(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	const n = 10_000
	flat := make([]float64, n)
	independent, walking := make([]float64, n), make([]float64, n)
	for i := range flat {
		flat[i], independent[i] = 1, 1+random.NormFloat64()
		walking[i] = 1 + random.NormFloat64()
		if i > 0 {
			walking[i] += 0.95 * (walking[i-1] - 1)
		}
	}
	of := func(v []float64) float64 {
		loss, _, err := verify.CompareCurves(curve(t, metrics(flat...)), curve(t, metrics(v...)))
		if err != nil {
			t.Fatal(err)
		}
		return loss.Error
	}
	if e, want := of(independent), 1/math.Sqrt(n); e < 0.7*want || e > 1.4*want {
		t.Errorf("standard error %v of independent differences, want about %v", e, want)
	}
	if e, naive := of(walking), math.Sqrt(1/(1-0.95*0.95)/n); e < 3*naive {
		t.Errorf("standard error %v of a walk, want well above the %v of independent differences", e, naive)
	}
}

func TestReadCurveRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "verify: the metrics have no step with a loss and a gradient norm; train for a step or more",
		"hello\n":                   "verify: line 1 is not an event of a run: ",
		metrics(1) + metrics(1):     "verify: line 3 has step 1 after step 1; give the folder of a run",
		`{"event":"step","step":1}`: "verify: the metrics have no step",
	} {
		if _, err := verify.ReadCurve(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
