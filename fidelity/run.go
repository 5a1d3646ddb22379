package fidelity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Run is a published run. Numbers that the source does not state are nil.
type Run struct {
	ID     string `json:"id"`
	Source struct {
		Key   string `json:"key"`
		Title string `json:"title"`
	} `json:"source"`
	Model struct {
		Family      *string  `json:"family"`
		Layers      *float64 `json:"layers"`
		Hidden      *float64 `json:"hidden"`
		Heads       *float64 `json:"heads"`
		KVHeads     *float64 `json:"kv_heads"`
		HeadDim     *float64 `json:"head_dim"`
		FFN         *float64 `json:"ffn"`
		Gated       *bool    `json:"ffn_gated"`
		Vocab       *float64 `json:"vocab"`
		Tied        *bool    `json:"tied_embeddings"`
		Experts     *float64 `json:"experts"`
		TopK        *float64 `json:"top_k"`
		ExpertFFN   *float64 `json:"moe_ffn"`
		SharedFFN   *float64 `json:"shared_expert_ffn"`
		DenseLayers *float64 `json:"dense_layers"`
		MTP         *float64 `json:"mtp_layers"`
		Latent      *struct {
			Query float64 `json:"q_lora"`
			KV    float64 `json:"kv_lora"`
			Nope  float64 `json:"qk_nope"`
			Rope  float64 `json:"qk_rope"`
			Value float64 `json:"v"`
		} `json:"mla"`
	} `json:"model"`
	Cluster struct {
		GPU     string   `json:"gpu"`
		Memory  *float64 `json:"gpu_mem_gb"`
		GPUs    *float64 `json:"gpus"`
		PerNode *float64 `json:"gpus_per_node"`
		Card    *float64 `json:"inter_gbit_per_gpu"`
	} `json:"cluster"`
	Layout struct {
		TP         *float64 `json:"tp"`
		SP         *bool    `json:"sp"`
		PP         *float64 `json:"pp"`
		VPP        *float64 `json:"vpp"`
		CP         *float64 `json:"cp"`
		EP         *float64 `json:"ep"`
		ETP        *float64 `json:"etp"`
		DP         *float64 `json:"dp"`
		Zero       *float64 `json:"zero"`
		FSDP       *bool    `json:"fsdp"`
		Shard      *float64 `json:"fsdp_shard_degree"`
		MicroBatch *float64 `json:"mbs"`
		Batch      *float64 `json:"gbs"`
		Sequence   *float64 `json:"seq"`
		Precision  *string  `json:"precision"`
		Recompute  *string  `json:"recompute"`
		Schedule   *string  `json:"schedule"`
		Kernel     *string  `json:"attention_kernel"`
	} `json:"layout"`
	Measured struct {
		Peak  *float64 `json:"peak_mem"`
		Unit  *string  `json:"peak_mem_unit"`
		Scope *string  `json:"peak_mem_scope"`
		OOM   *bool    `json:"oom"`
	} `json:"measured"`
	Derived struct {
		Seconds *float64 `json:"iter_time_s"`
	} `json:"derived"`
	Use   []string `json:"use"`
	Group string   `json:"config_group"`
}

// Read reads a file of runs, a list or a single one. What the rows assume is merged in.
func Read(data []byte) ([]Run, error) {
	var rows []map[string]any
	into := any(&rows)
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '{' {
		rows = make([]map[string]any, 1)
		into = &rows[0]
	}
	if err := json.Unmarshal(data, into); err != nil {
		return nil, fmt.Errorf("fidelity: %w; give a JSON list of runs, or one run", err)
	}
	if len(rows) == 0 {
		return nil, errors.New("fidelity: the file has no runs; give a JSON list of runs")
	}
	runs := make([]Run, len(rows))
	for i, row := range rows {
		merge(row)
		text, err := json.Marshal(row)
		if err == nil {
			err = json.Unmarshal(text, &runs[i])
		}
		if err != nil {
			return nil, fmt.Errorf("fidelity: run %d (%v): %w", i, row["id"], err)
		}
	}
	return runs, nil
}

// merge fills what a row does not state with what it assumes.
func merge(row map[string]any) {
	assumed, _ := row["assumed"].(map[string]any)
	for path, value := range assumed {
		section, key, _ := strings.Cut(path, ".")
		if part, ok := row[section].(map[string]any); ok && part[key] == nil {
			part[key] = value
		}
	}
}

// Counts tells whether a row counts for the step time, or why not.
func (r *Run) Counts() (bool, string) {
	switch {
	case r.Derived.Seconds == nil:
		return false, "no step time is published"
	case r.uses("step_time_full") || r.uses("step_time_assumed"):
		return true, ""
	case r.uses("step_time_partial"):
		return false, "recomputation, virtual stages or sharding are not stated"
	case r.uses("step_time_unknown_mbs"):
		return false, "the micro-batch is not stated"
	case r.uses("schedule_ratio"):
		return false, "for relative comparison of schedules only"
	}
	return false, "its source is not complete"
}

func (r *Run) uses(use string) bool { return slices.Contains(r.Use, use) }
