package main

import (
	"fmt"
	"strings"

	"carve/collective"
	"carve/comm"
	"carve/comm/timing"
	"carve/internal/document"
	"carve/tensor"
)

// opNames are the operations' names, as they are in the table.
func opNames() (names []string) {
	for _, op := range timing.Ops() {
		names = append(names, timing.Name(op))
	}
	return names
}

// findOps reads a list of operations.
func findOps(text string) (list []comm.Op, err error) {
	if text == "all" {
		return timing.Ops(), nil
	}
	for name := range strings.SplitSeq(text, ",") {
		found := false
		for _, op := range timing.Ops() {
			if timing.Name(op) == name {
				list, found = append(list, op), true
			}
		}
		if !found {
			return nil, fmt.Errorf("--op %q is not known%s", document.Clip(name), document.Suggest(name, append(opNames(), "all")))
		}
	}
	return list, nil
}

// dtypes are nccl-tests' names of our dtypes.
func commDTypes() []tensor.DType {
	return []tensor.DType{tensor.FP32, tensor.BF16, tensor.FP64, tensor.Int32}
}

// dtypeName is the name of a dtype in the table.
func dtypeName(d tensor.DType) string {
	switch d {
	case tensor.FP32:
		return "float"
	case tensor.FP64:
		return "double"
	case tensor.BF16, tensor.Int32:
	}
	return d.String()
}

func dtypeNames() (names []string) {
	for _, d := range commDTypes() {
		names = append(names, dtypeName(d))
	}
	return names
}

func findDType(name string) (tensor.DType, error) {
	for _, d := range commDTypes() {
		if dtypeName(d) == name {
			return d, nil
		}
	}
	return 0, fmt.Errorf("--dtype %q is not known%s", document.Clip(name), document.Suggest(name, dtypeNames()))
}

func algorithmNames() (names []string) {
	for _, a := range collective.Algorithms() {
		names = append(names, a.String())
	}
	return names
}

// findAlgorithm reads an algorithm; nil for the best of each size.
func findAlgorithm(name string) (*collective.Algorithm, error) {
	if name == "best" {
		return nil, nil
	}
	for _, a := range collective.Algorithms() {
		if a.String() == name {
			return &a, nil
		}
	}
	return nil, fmt.Errorf("--algorithm %q is not known%s", document.Clip(name), document.Suggest(name, append(algorithmNames(), "best")))
}
