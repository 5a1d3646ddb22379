package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carve/mesh"
	"carve/tensor"

	"github.com/google/go-cmp/cmp"
)

// numbers is n bytes that no other test value has.
func numbers(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)*7 + seed
	}
	return b
}

// entries is a small state: two parameters and their optimizer state, in several dtypes.
func entries(seed byte) (model, optimizer []Entry) {
	model = []Entry{
		{Name: "model.embed_tokens.weight", DType: tensor.BF16, Shape: []int{3, 5}, Data: numbers(30, seed)},
		{Name: "lm_head.weight", DType: tensor.FP32, Shape: []int{2, 4}, Data: numbers(32, seed+1)},
	}
	optimizer = []Entry{
		{Name: "optimizer.m.lm_head.weight", DType: tensor.FP64, Shape: []int{4}, Data: numbers(32, seed+2)},
		{Name: "optimizer.count", DType: tensor.Int32, Shape: nil, Data: numbers(4, seed+3)},
	}
	return model, optimizer
}

// save writes one checkpoint of two files.
func save(root string, step int) error {
	model, optimizer := entries(byte(step))
	p := New(root, step)
	if err := p.Begin(); err != nil {
		return err
	}
	a, errA := p.WriteShard("model", 0, model)
	b, errB := p.WriteShard("optimizer", 0, optimizer)
	if err := errors.Join(errA, errB); err != nil {
		return errors.Join(err, p.Abort())
	}
	m := &Manifest{State: State{Step: step, Tokens: 640, Seed: 1 << 63, Plan: "abc", Data: json.RawMessage(`{"sample":7}`)}, Tensors: Merge(a, b)}
	if err := p.Commit(m); err != nil {
		return errors.Join(err, p.Abort())
	}
	return nil
}

func mustSave(t *testing.T, root string, steps ...int) {
	t.Helper()
	for _, step := range steps {
		if err := save(root, step); err != nil {
			t.Fatal(err)
		}
	}
}

// mustLatest opens the newest whole checkpoint and holds its step and content.
func mustLatest(t *testing.T, root string, step int) (refused []error) {
	t.Helper()
	c, refused, err := Latest(root)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Step != step {
		t.Fatalf("latest is step %d, want %d", c.Step, step)
	}
	model, optimizer := entries(byte(step))
	for _, e := range slices.Concat(model, optimizer) {
		got := make([]byte, len(e.Data))
		if err := c.Read(e.Name, e.DType, e.Shape, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e.Data, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", e.Name, diff)
		}
	}
	return refused
}

func TestSaveAndRead(t *testing.T) {
	root := filepath.Join(t.TempDir(), "checkpoints")
	mustSave(t, root, 100)
	if refused := mustLatest(t, root, 100); refused != nil {
		t.Errorf("refused %v", refused)
	}
	c, err := Open(filepath.Join(root, "step-00000100"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := State{Step: 100, Tokens: 640, Seed: 1 << 63, Plan: "abc", Data: json.RawMessage(`{"sample":7}`)}
	if diff := cmp.Diff(want, c.State); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	if got := c.Bytes(); got != 98 {
		t.Errorf("%d bytes of tensors, want 98", got)
	}
	left, err := filepath.Glob(filepath.Join(root, ".*"))
	if err != nil || left != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestSavesAreEqual holds that a checkpoint is a function of the state: two saves give the same bytes.
func TestSavesAreEqual(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	mustSave(t, a, 5)
	mustSave(t, b, 5)
	for _, name := range []string{manifestName, "model-00000.safetensors", "optimizer-00000.safetensors"} {
		x, errX := os.ReadFile(filepath.Join(a, stepName(5), name))
		y, errY := os.ReadFile(filepath.Join(b, stepName(5), name))
		if err := errors.Join(errX, errY); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(x, y); diff != "" {
			t.Errorf("%s differs:\n%s", name, diff)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	root := t.TempDir()
	mustSave(t, root, 1)
	c, err := Open(filepath.Join(root, stepName(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cases := []struct {
		name, tensor string
		dtype        tensor.DType
		shape        []int
		want         string
	}{
		{"unknown", "model.norm.weight", tensor.FP32, []int{4}, `has no tensor "model.norm.weight"`},
		{"other shape", "lm_head.weight", tensor.FP32, []int{4, 2}, "is fp32 [2 4], this run needs fp32 [4 2]"},
		{"other dtype", "lm_head.weight", tensor.BF16, []int{2, 4}, "is fp32 [2 4], this run needs bf16 [2 4]"},
	}
	for _, tc := range cases {
		err := c.Read(tc.tensor, tc.dtype, tc.shape, make([]byte, 32))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

// TestSlices holds that blocks written by two ranks make one tensor, and that a gap or an overlap is refused.
func TestSlices(t *testing.T) {
	shape := []int{4, 2}
	rows := func(lo, hi int) Entry {
		region := mesh.Region{{Start: lo, Stop: hi}, {Start: 0, Stop: 2}}
		return Entry{Name: "w", DType: tensor.FP32, Shape: shape, Region: region, Data: numbers(8*(hi-lo), byte(lo))}
	}
	cases := []struct {
		name  string
		parts []Entry
		want  string
	}{
		{"cover", []Entry{rows(0, 3), rows(3, 4)}, ""},
		{"gap", []Entry{rows(0, 2), rows(3, 4)}, `tensor "w": its slices hold 6 of 8 elements`},
		{"overlap", []Entry{rows(0, 2), rows(1, 3)}, `tensor "w": slices [{0 2} {0 2}] and [{1 3} {0 2}] overlap`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			p := New(root, 1)
			if err := p.Begin(); err != nil {
				t.Fatal(err)
			}
			var shards [][]Tensor
			for rank, e := range tc.parts {
				s, err := p.WriteShard("model", rank, []Entry{e})
				if err != nil {
					t.Fatal(err)
				}
				shards = append(shards, s)
			}
			err := p.Commit(&Manifest{Tensors: Merge(shards...)})
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("commit: %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c, err := openVerified(p.Path())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := len(c.Tensors[0].Slices); got != 2 {
				t.Errorf("%d slices, want 2", got)
			}
		})
	}
}

// TestEveryFlippedByte flips every byte of every file of a checkpoint in turn: it is either refused with the
// file's name, or, where the byte means nothing, reads as before.
func TestEveryFlippedByte(t *testing.T) {
	root := t.TempDir()
	mustSave(t, root, 1)
	folder := filepath.Join(root, stepName(1))
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	caught := 0
	for _, f := range files {
		path := filepath.Join(folder, f.Name())
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range good {
			bad := slices.Clone(good)
			bad[i] ^= 0x55
			if err := os.WriteFile(path, bad, 0o644); err != nil {
				t.Fatal(err)
			}
			c, err := openVerified(folder)
			var damage *DamageError
			switch {
			case err == nil:
				c.Close()
				mustLatest(t, root, 1)
			case !errors.As(err, &damage) || !strings.HasPrefix(damage.Path, folder):
				t.Fatalf("byte %d of %s: %v", i, f.Name(), err)
			default:
				caught++
			}
		}
		if err := os.WriteFile(path, good, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if caught < 500 {
		t.Errorf("only %d flips were caught", caught)
	}
	mustLatest(t, root, 1)
}

func TestLatestSkipsDamage(t *testing.T) {
	cases := []struct {
		name   string
		damage func(folder string) error
		want   string
	}{
		{"truncated", func(f string) error { return os.Truncate(filepath.Join(f, "model-00000.safetensors"), 100) }, "its header claims"},
		{"cut numbers", func(f string) error {
			info, err := os.Stat(filepath.Join(f, "model-00000.safetensors"))
			if err != nil {
				return err
			}
			return os.Truncate(filepath.Join(f, "model-00000.safetensors"), info.Size()-1)
		}, "ends at byte 62 of the data, the file at 61"},
		{"empty file", func(f string) error { return os.Truncate(filepath.Join(f, "optimizer-00000.safetensors"), 0) }, "it has 0 bytes"},
		{"missing file", func(f string) error { return os.Remove(filepath.Join(f, "optimizer-00000.safetensors")) }, "no such file"},
		{"missing manifest", func(f string) error { return os.Remove(filepath.Join(f, manifestName)) }, "it has no manifest.json"},
		{"cut manifest", func(f string) error { return os.Truncate(filepath.Join(f, manifestName), 40) }, "not valid JSON"},
		{"folder for a file", func(f string) error {
			path := filepath.Join(f, "model-00000.safetensors")
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o755))
		}, "not a regular file"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			mustSave(t, root, 1, 2)
			if err := tc.damage(filepath.Join(root, stepName(2))); err != nil {
				t.Fatal(err)
			}
			refused := mustLatest(t, root, 1)
			if len(refused) != 1 || !strings.Contains(refused[0].Error(), tc.want) {
				t.Errorf("refused %v, want %q", refused, tc.want)
			}
		})
	}
}

func TestLatestNone(t *testing.T) {
	root := t.TempDir()
	if _, _, err := Latest(filepath.Join(root, "nothing")); !errors.Is(err, ErrNone) {
		t.Errorf("no folder: %v", err)
	}
	mustSave(t, root, 1)
	if err := os.Remove(filepath.Join(root, stepName(1), manifestName)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Latest(root); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "it has no manifest.json") {
		t.Errorf("only a damaged one: %v", err)
	}
}

func TestRetain(t *testing.T) {
	root := t.TempDir()
	mustSave(t, root, 1, 2, 3, 4, 9)
	for _, left := range []string{".step-00000002.partial", ".step-00000001.removed"} {
		if err := os.Mkdir(filepath.Join(root, left), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := Retain(root, 4, 2); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range names {
		got = append(got, n.Name())
	}
	if diff := cmp.Diff([]string{"step-00000003", "step-00000004", "step-00000009"}, got); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// TestReplace holds that a step that is saved again takes the place of the old one.
func TestReplace(t *testing.T) {
	root := t.TempDir()
	mustSave(t, root, 3)
	if err := os.Remove(filepath.Join(root, stepName(3), "model-00000.safetensors")); err != nil {
		t.Fatal(err)
	}
	mustSave(t, root, 3)
	mustLatest(t, root, 3)
}

// TestNoRoom holds that a folder that cannot be made is an error that says so.
func TestNoRoom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := save(filepath.Join(file, "checkpoints"), 1); err == nil {
		t.Error("a folder below a file was made")
	}
}

func FuzzManifest(f *testing.F) {
	m := &Manifest{State: State{Step: 3, Data: json.RawMessage(`{}`)}, Tensors: []Tensor{{
		Name: "w", DType: tensor.FP32, Shape: []int{2},
		Slices: []Slice{{Region: mesh.Region{{Start: 0, Stop: 2}}, File: "model-00000.safetensors", Hash: "00"}},
	}}}
	text, err := m.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := decodeManifest(text)
		if err != nil {
			return
		}
		for _, tn := range m.Tensors {
			if err := checkCover(tn); err != nil {
				t.Fatalf("accepted %+v: %v", tn, err)
			}
		}
		if _, err := m.encode(); err != nil {
			t.Fatalf("accepted what cannot be written: %v", err)
		}
	})
}

// TestReadRegion writes a matrix in unequal blocks, two of them in one file, and reads every block of it.
func TestReadRegion(t *testing.T) {
	const rows, cols = 5, 4
	shape, all := []int{rows, cols}, numbers(4*rows*cols, 3)
	block := func(r0, r1, c0, c1 int) (mesh.Region, []byte) {
		var data []byte
		for r := r0; r < r1; r++ {
			data = append(data, all[4*(r*cols+c0):4*(r*cols+c1)]...)
		}
		return mesh.Region{{Start: r0, Stop: r1}, {Start: c0, Stop: c1}}, data
	}
	p := New(t.TempDir(), 1)
	if err := p.Begin(); err != nil {
		t.Fatal(err)
	}
	var shards [][]Tensor
	for rank, parts := range [][][4]int{{{0, 1, 0, 3}, {0, 1, 3, 4}}, {{1, 3, 0, 4}, {3, 4, 0, 1}}, {{3, 4, 1, 4}, {4, 5, 0, 4}}} {
		var entries []Entry
		for _, b := range parts {
			region, data := block(b[0], b[1], b[2], b[3])
			entries = append(entries, Entry{Name: "w", DType: tensor.FP32, Shape: shape, Region: region, Data: data})
		}
		s, err := p.WriteShard("model", rank, entries)
		if err != nil {
			t.Fatal(err)
		}
		shards = append(shards, s)
	}
	if err := p.Commit(&Manifest{Tensors: Merge(shards...)}); err != nil {
		t.Fatal(err)
	}
	c, err := openVerified(p.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for r0 := range rows {
		for r1 := r0 + 1; r1 <= rows; r1++ {
			for c0 := range cols {
				for c1 := c0 + 1; c1 <= cols; c1++ {
					region, want := block(r0, r1, c0, c1)
					got := make([]byte, len(want))
					if err := c.ReadRegion("w", tensor.FP32, shape, region, got); err != nil || !bytes.Equal(got, want) {
						t.Errorf("%v: %v, %v, want %v", region, got, err, want)
					}
				}
			}
		}
	}
	if err := c.ReadRegion("w", tensor.FP32, shape, mesh.Region{{Stop: 1}, {Stop: 1}}, make([]byte, 8)); err == nil {
		t.Error("a block of another size is read")
	}
}
