package checkpoint

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// safetensors makes a file from a header's text and the number of bytes that follow.
func safetensors(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func TestReadHeaderRefuses(t *testing.T) {
	one := func(dtype, shape, offsets string) []byte {
		return safetensors(fmt.Sprintf(`{"a":{"dtype":%s,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets), 8)
	}
	cases := []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "0 bytes, too few"},
		{"huge length", binary.LittleEndian.AppendUint64(nil, 1<<63), "claims 9223372036854775808 bytes of a file of 8"},
		{"length past the end", append(binary.LittleEndian.AppendUint64(nil, 3), "{}"...), "claims 3 bytes of a file of 10"},
		{"not JSON", safetensors("nonsense", 0), "invalid character"},
		{"array", safetensors("[]", 0), "[ where an object should begin"},
		{"null", safetensors("null", 0), "where an object should begin"},
		{"two values", safetensors("{} {}", 0), "something follows"},
		{"duplicate tensor", safetensors(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, 0), `"a" appears twice`},
		{"duplicate key", safetensors(`{"a":{"dtype":"F32","dtype":"F64"}}`, 0), `"dtype" appears twice`},
		{"unknown key", safetensors(`{"a":{"dtype":"F32","size":3}}`, 0), `unknown key "size"`},
		{"unknown dtype", one(`"F16"`, "[4]", "[0,8]"), `dtype "F16" is not one of`},
		{"dtype of another type", one(`3`, "[2]", "[0,8]"), "cannot unmarshal number"},
		{"negative size", one(`"F32"`, "[-2]", "[0,8]"), "negative size"},
		{"fraction", one(`"F32"`, "[2.5]", "[0,8]"), "cannot unmarshal number 2.5"},
		{"overflow", one(`"F32"`, "[4294967296,4294967296]", "[0,8]"), "is too large"},
		{"overflow by zero", one(`"F32"`, "[9223372036854775807,9223372036854775807,0]", "[0,0]"), "is too large"},
		{"many dimensions", one(`"F32"`, "["+strings.Repeat("1,", 30)+"1]", "[0,4]"), "31 dimensions"},
		{"long shape", one(`"F32"`, "["+strings.Repeat("1,", 3000)+"1]", "[0,4]"), "a value of 6003 bytes"},
		{"too few bytes", one(`"F32"`, "[2]", "[0,4]"), "needs 8 bytes, data_offsets give 4"},
		{"backward", one(`"F32"`, "[2]", "[8,0]"), "are not a range"},
		{"negative offset", one(`"F32"`, "[2]", "[-8,0]"), "are not a range"},
		{"one offset", one(`"F32"`, "[2]", "[8]"), "are not a range"},
		{"past the end", one(`"F32"`, "[4]", "[0,16]"), "ends at byte 16 of the data, the file at 8"},
		{"hole", one(`"F32"`, "[1]", "[4,8]"), "begins at byte 4 of the data, the one before it ends at 0"},
		{"rest", one(`"F32"`, "[1]", "[0,4]"), "4 bytes follow the last tensor"},
		{"overlap", safetensors(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "begins at byte 4 of the data, the one before it ends at 8"},
		{"metadata of another type", safetensors(`{"__metadata__":{"a":1}}`, 0), "cannot unmarshal number"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ReadHeader(strings.NewReader(string(tc.file)), int64(len(tc.file)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// TestHeaderRoundTrips holds that what the writer lays out the reader finds.
func TestHeaderRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []Entry
		var want []Info
		for i := range rapid.IntRange(0, 5).Draw(t, "tensors") {
			e := Entry{Name: fmt.Sprintf("%d%s", i, rapid.String().Draw(t, "name")), DType: rapid.SampledFrom(dtypes[:]).Draw(t, "dtype").dtype}
			e.Shape = rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(t, "shape")
			e.Data = make([]byte, whole(e.Shape).Elements()*e.DType.Size())
			list = append(list, e)
			want = append(want, Info{Name: strings.ToValidUTF8(e.Name, "\ufffd"), DType: e.DType, Shape: e.Shape, Stop: int64(len(e.Data))})
		}
		head, err := formatHeader(list)
		if err != nil {
			t.Fatal(err)
		}
		file := slices.Clone(head)
		for i, e := range list {
			want[i].Start = int64(len(file))
			file = append(file, e.Data...)
			want[i].Stop = int64(len(file))
		}
		got, err := ReadHeader(strings.NewReader(string(file)), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			g, ok := got.Find(w.Name)
			if !ok || !slices.Equal(g.Shape, w.Shape) || g.DType != w.DType || g.Start != w.Start || g.Stop != w.Stop {
				t.Fatalf("got %+v, want %+v", g, w)
			}
		}
	})
}

func FuzzReadHeader(f *testing.F) {
	f.Add(safetensors(`{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8))
	f.Add(safetensors(`{"a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},"b":{"dtype":"F64","shape":[1,0],"data_offsets":[2,2]}}`, 2))
	f.Add(safetensors("{}", 0))
	f.Add(binary.LittleEndian.AppendUint64(nil, 1<<40))
	f.Fuzz(func(t *testing.T, file []byte) {
		h, err := ReadHeader(strings.NewReader(string(file)), int64(len(file)))
		if err != nil {
			return
		}
		covered := int64(0)
		for _, info := range h.Tensors {
			n, err := byteLen(info.DType, info.Shape)
			if err != nil || info.Stop-info.Start != n || info.Start < 8 || info.Stop > int64(len(file)) {
				t.Fatalf("accepted %+v in %d bytes (%d, %v)", info, len(file), n, err)
			}
			covered += n
		}
		if covered > int64(len(file))-8 {
			t.Fatalf("tensors of %d bytes in a file of %d", covered, len(file))
		}
	})
}
