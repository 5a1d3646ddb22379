package checkpoint

import (
	"fmt"

	"carve/tensor"
)

// dtypes pairs carve's dtypes with their names in a safetensors header.
var dtypes = [...]struct {
	name  string
	dtype tensor.DType
}{
	{"F32", tensor.FP32},
	{"BF16", tensor.BF16},
	{"F64", tensor.FP64},
	{"I32", tensor.Int32},
}

// dtypeName is the safetensors name of a dtype.
func dtypeName(d tensor.DType) string {
	for _, known := range dtypes {
		if known.dtype == d {
			return known.name
		}
	}
	panic(fmt.Sprintf("checkpoint: %v has no safetensors name", d))
}

// parseDType reads a safetensors dtype name.
func parseDType(name string) (tensor.DType, error) {
	for _, known := range dtypes {
		if known.name == name {
			return known.dtype, nil
		}
	}
	return 0, fmt.Errorf("dtype %q is not one of F32, BF16, F64, I32; convert the file", clip(name))
}

// clip shortens hostile text, so that an error stays one line.
func clip(s string) string {
	const limit = 60
	if len(s) > limit {
		return s[:limit] + "..."
	}
	return s
}
