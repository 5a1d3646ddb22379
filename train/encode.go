package train

import (
	"encoding/json"
	"math"

	"carve/tensor"
	"carve/unit"
)

// Encode is the JSON object of an event in metrics.jsonl and in the output for scripts, and whether it has one.
// Numbers that JSON cannot say are null.
func Encode(e Event) ([]byte, bool) {
	var v any
	switch e := e.(type) {
	case Step:
		v = stepJSON{
			Event: "step", Step: e.Step, Loss: number(e.Loss), GradNorm: number(e.GradNorm), Rate: e.Rate,
			TokensPerSecond: number(e.TokensPerSecond), MFU: number(e.MFU),
			ExposedComm: float64(e.ExposedComm), DataWait: float64(e.DataWait),
		}
	case Experts:
		v = expertsOf(e)
	case Validation:
		v = validationJSON{Event: "validation", Step: e.Step, Loss: number(e.Loss), Perplexity: number(e.Perplexity)}
	case Saved:
		v = savedJSON{Event: "checkpoint", Step: e.Step, Path: e.Path, Bytes: int64(e.Bytes), Seconds: float64(e.Elapsed)}
	case Summary:
		v = summaryJSON{
			Event: "summary", Outcome: e.Outcome, Steps: e.Steps, FinalLoss: number(e.FinalLoss), ValLoss: number(e.ValLoss),
			Tokens: e.Tokens, TokensPerSecond: number(e.TokensPerSecond), MFU: number(e.MFU), Seconds: float64(e.Elapsed),
			World: e.World, Peak: usage(e.Peak), Path: e.Path,
		}
	case Preparing, Text, Started, Warning:
		return nil, false
	default:
		return nil, false
	}
	text, err := json.Marshal(v)
	return text, err == nil
}

// The objects. Their keys are relied on by scripts.
type stepJSON struct {
	Event           string   `json:"event"`
	Step            int      `json:"step"`
	Loss            *float64 `json:"loss"`
	GradNorm        *float64 `json:"grad_norm"`
	TokensPerSecond *float64 `json:"tokens_per_second"`
	MFU             *float64 `json:"mfu"`
	ExposedComm     float64  `json:"exposed_comm_seconds"`
	DataWait        float64  `json:"data_wait_seconds"`
	Rate            float64  `json:"learning_rate"`
}

type expertsJSON struct {
	Event     string      `json:"event"`
	Step      int         `json:"step"`
	Imbalance float64     `json:"imbalance"`
	Straggler float64     `json:"straggler"`
	Dropped   int64       `json:"dropped"`
	Layers    []layerJSON `json:"layers"`
}

type layerJSON struct {
	Layer     string  `json:"layer"`
	Imbalance float64 `json:"imbalance"`
	Dropped   int64   `json:"dropped"`
	Load      []int64 `json:"load"`
}

func expertsOf(e Experts) expertsJSON {
	v := expertsJSON{Event: "experts", Step: e.Step, Imbalance: e.Imbalance, Straggler: e.Straggler, Dropped: e.Dropped}
	for _, l := range e.Layers {
		v.Layers = append(v.Layers, layerJSON{l.Layer, l.Imbalance(), l.Dropped, l.Chosen})
	}
	return v
}

type validationJSON struct {
	Event      string   `json:"event"`
	Step       int      `json:"step"`
	Loss       *float64 `json:"val_loss"`
	Perplexity *float64 `json:"perplexity"`
}

type savedJSON struct {
	Event   string  `json:"event"`
	Step    int     `json:"step"`
	Path    string  `json:"path"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

type summaryJSON struct {
	Event           string           `json:"event"`
	Outcome         Outcome          `json:"outcome"`
	Steps           int              `json:"steps"`
	FinalLoss       *float64         `json:"final_loss"`
	ValLoss         *float64         `json:"val_loss"`
	Tokens          int64            `json:"tokens"`
	TokensPerSecond *float64         `json:"tokens_per_second"`
	MFU             *float64         `json:"mfu"`
	Seconds         float64          `json:"seconds"`
	World           int              `json:"world"`
	Peak            map[string]int64 `json:"peak_memory_bytes"`
	Path            string           `json:"run_dir"`
}

// decodeSummary reads a summary that Encode wrote.
func decodeSummary(text []byte) (Summary, bool) {
	var v summaryJSON
	if json.Unmarshal(text, &v) != nil || v.Event != "summary" {
		return Summary{}, false
	}
	s := Summary{
		Outcome: v.Outcome, Steps: v.Steps, FinalLoss: float(v.FinalLoss), ValLoss: float(v.ValLoss),
		Tokens: v.Tokens, TokensPerSecond: float(v.TokensPerSecond), MFU: float(v.MFU), Elapsed: unit.Seconds(v.Seconds),
		World: v.World, Path: v.Path,
	}
	for _, c := range tensor.Categories() {
		s.Peak[c] = unit.Bytes(v.Peak[c.String()])
	}
	return s, true
}

// float is a number that may be null.
func float(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// number is x, or null for NaN and infinities.
func number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// usage is bytes by category.
func usage(u tensor.Usage) map[string]int64 {
	m := map[string]int64{}
	for _, c := range tensor.Categories() {
		m[c.String()] = int64(u.Of(c))
	}
	return m
}
