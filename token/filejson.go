package token

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fileVocab maps spelled tokens to ids and is written in the order of ids.
type fileVocab map[string]int32

// MarshalJSON writes the tokens by ascending id.
func (v fileVocab) MarshalJSON() ([]byte, error) {
	names := slices.SortedFunc(maps.Keys(v), func(a, b string) int { return cmp.Compare(v[a], v[b]) })
	var out bytes.Buffer
	out.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			out.WriteByte(',')
		}
		key, err := plainJSON(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%s:%d", key, v[name])
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// fileMerge is "left right" or, in newer files, ["left", "right"]. It is written
// in the first form, which every version of the library reads.
type fileMerge struct{ left, right string }

// MarshalJSON writes "left right".
func (m fileMerge) MarshalJSON() ([]byte, error) { return plainJSON(m.left + " " + m.right) }

// UnmarshalJSON reads both forms.
func (m *fileMerge) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		var two []string
		if err := json.Unmarshal(data, &two); err != nil {
			return err
		}
		if len(two) != 2 {
			return fmt.Errorf("merge %.80s has %d parts; it needs 2", data, len(two))
		}
		m.left, m.right = two[0], two[1]
		return nil
	}
	var one string
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	left, right, ok := cutOnce(one)
	if !ok {
		return fmt.Errorf("merge %.80q is not two tokens with one space between", one)
	}
	m.left, m.right = left, right
	return nil
}

// cutOnce splits s at its only space.
func cutOnce(s string) (left, right string, ok bool) {
	left, right, ok = strings.Cut(s, " ")
	return left, right, ok && left != "" && right != "" && !strings.Contains(right, " ")
}

// plainJSON encodes v without escaping <, > and &.
func plainJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}
