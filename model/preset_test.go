package model_test

import (
	"testing"

	"carve/model"

	"github.com/google/go-cmp/cmp"
)

func TestPresetsRoundTrip(t *testing.T) {
	names := model.Presets()
	if len(names) < 60 {
		t.Fatalf("only %d presets", len(names))
	}
	for _, name := range names {
		c := preset(t, name)
		again, err := model.Read(model.Write(c, "bfloat16"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Errorf("%s changes when written and read:\n%s", name, diff)
		}
	}
}

func TestUnknownPreset(t *testing.T) {
	_, err := model.Preset("lama-3.1-8B")
	want := `model: unknown preset "lama-3.1-8B"; did you mean llama-3.1-8b?`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
