package token

import "fmt"

// alphabet is the one-to-one map between bytes and the printable characters
// that stand for them in byte-level vocabulary files, as GPT-2 published it:
// printable Latin-1 characters stand for themselves, the others for the
// characters from U+0100 on, in order.
type alphabet struct {
	char   [256]rune
	byteOf map[rune]byte
}

func newAlphabet() *alphabet {
	a := &alphabet{byteOf: make(map[rune]byte, 256)}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if !printable(r) {
			r = next
			next++
		}
		a.char[b] = r
		a.byteOf[r] = byte(b)
	}
	return a
}

func printable(r rune) bool {
	return r >= '!' && r <= '~' || r >= '¡' && r <= '¬' || r >= '®' && r <= 'ÿ'
}

// write spells bytes in the alphabet.
func (a *alphabet) write(text []byte) string {
	out := make([]rune, len(text))
	for i, b := range text {
		out[i] = a.char[b]
	}
	return string(out)
}

// read is the inverse of write.
func (a *alphabet) read(spelled string) ([]byte, error) {
	var out []byte
	for _, r := range spelled {
		b, ok := a.byteOf[r]
		if !ok {
			return nil, fmt.Errorf("%.60q has %q, which stands for no byte; the vocabulary is not byte-level", spelled, r)
		}
		out = append(out, b)
	}
	return out, nil
}
