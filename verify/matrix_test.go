package verify_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"carve/verify"
)

// sampled is how many layouts of the matrix one run of the tests proves.
const sampled = 16

// TestMatrixSample proves a sample of the matrix: that of $CARVE_MATRIX_SEED, or of the day. The whole is for make soak.
func TestMatrixSample(t *testing.T) {
	seed := uint64(time.Now().Unix() / 86400)
	if text := os.Getenv("CARVE_MATRIX_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	plans := verify.Sample(verify.Matrix(), sampled, seed)
	if len(plans) != sampled {
		t.Fatalf("%d layouts, want %d", len(plans), sampled)
	}
	if racing {
		plans = plans[:2]
	}
	for _, p := range plans {
		r, err := verify.Run(t.Context(), p, verify.Options{Steps: 2})
		if err != nil {
			t.Errorf("seed %d: %s: %v", seed, verify.Describe(p), err)
			continue
		}
		if err := r.Verdict(); err != nil {
			t.Errorf("seed %d: %s: %v", seed, verify.Describe(p), err)
		}
	}
}
