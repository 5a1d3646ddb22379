package unit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size in memory, in a file or on a wire.
type Bytes int64

// Binary multiples, for memory.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

// Decimal multiples, for what vendors and files count in tens.
const (
	KB Bytes = 1e3
	MB Bytes = 1e6
	GB Bytes = 1e9
	TB Bytes = 1e12
)

// ErrSize is wrapped by every error of ParseBytes.
var ErrSize = errors.New("unit: not a size")

// String prints b for people, in the binary unit that leaves one to four digits before the point:
// "512 B", "25.00 MiB", "79.35 GiB".
func (b Bytes) String() string {
	magnitude := math.Abs(float64(b))
	switch {
	case magnitude >= float64(TiB):
		return fmt.Sprintf("%.2f TiB", float64(b)/float64(TiB))
	case magnitude >= float64(GiB):
		return fmt.Sprintf("%.2f GiB", float64(b)/float64(GiB))
	case magnitude >= float64(MiB):
		return fmt.Sprintf("%.2f MiB", float64(b)/float64(MiB))
	case magnitude >= float64(KiB):
		return fmt.Sprintf("%.2f KiB", float64(b)/float64(KiB))
	}
	return fmt.Sprintf("%d B", int64(b))
}

// GiB returns b in units of 2^30 bytes, for tables whose heading names the unit.
func (b Bytes) GiB() float64 { return float64(b) / float64(GiB) }

// At returns the time that moving b takes at rate.
func (b Bytes) At(rate BytesPerSecond) Seconds { return Seconds(float64(b) / float64(rate)) }

// Per returns the rate at which b moved in time.
func (b Bytes) Per(time Seconds) BytesPerSecond { return BytesPerSecond(float64(b) / float64(time)) }

// suffix is a spelling that ParseBytes accepts; the binary ones are also what Exact writes.
type suffix struct {
	text string
	size Bytes
}

// suffixes is ordered from the largest binary multiple down, then the decimal ones.
var suffixes = [...]suffix{
	{"TiB", TiB},
	{"GiB", GiB},
	{"MiB", MiB},
	{"KiB", KiB},
	{"TB", TB},
	{"GB", GB},
	{"MB", MB},
	{"KB", KB},
	{"kB", KB},
	{"B", 1},
}

// Exact prints b for files: the largest binary multiple that divides it, with no rounding, so that
// ParseBytes(b.Exact()) == b. Examples: "25MiB", "0B", "1000B".
func (b Bytes) Exact() string {
	for _, s := range suffixes {
		if s.size&(s.size-1) == 0 && b%s.size == 0 && (b != 0 || s.size == 1) {
			return strconv.FormatInt(int64(b/s.size), 10) + s.text
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// ParseBytes reads a size such as "25MiB", "1.5 GiB", "80GB" or "4096" (bytes). The value must be a
// whole number of bytes, not negative, and below 2^63.
func ParseBytes(text string) (Bytes, error) {
	number, size := splitSuffix(strings.TrimSpace(text))
	if !decimal(number) {
		return 0, fmt.Errorf("%w: %q; write a number and B, KiB, MiB, GiB, TiB, KB, MB, GB or TB, such as 25MiB",
			ErrSize, clip(text))
	}
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
		if whole > math.MaxInt64/int64(size) {
			return 0, fmt.Errorf("%w: %q does not fit 63 bits", ErrSize, clip(text))
		}
		return Bytes(whole) * size, nil
	}
	value, err := strconv.ParseFloat(number, 64)
	scaled := value * float64(size)
	switch {
	case err != nil || scaled >= math.MaxInt64:
		return 0, fmt.Errorf("%w: %q does not fit 63 bits", ErrSize, clip(text))
	case scaled != math.Trunc(scaled):
		return 0, fmt.Errorf("%w: %q is not a whole number of bytes", ErrSize, clip(text))
	}
	return Bytes(scaled), nil
}

// splitSuffix separates the number of a size from its unit; without a unit the size is one byte.
func splitSuffix(text string) (number string, size Bytes) {
	for _, s := range suffixes {
		if rest, ok := strings.CutSuffix(text, s.text); ok {
			return strings.TrimSpace(rest), s.size
		}
	}
	return text, 1
}

// decimal tells whether text is digits with at most one point inside: no sign, exponent, hex or NaN.
func decimal(text string) bool {
	whole, fraction, found := strings.Cut(text, ".")
	return digits(whole) && (!found || digits(fraction))
}

// digits tells whether text is one decimal digit or more and nothing else.
func digits(text string) bool {
	for _, r := range text {
		if r < '0' || r > '9' {
			return false
		}
	}
	return text != ""
}

// clip shortens hostile text, so that an error stays one line.
func clip(text string) string {
	const limit = 40
	if len(text) > limit {
		return text[:limit] + "..."
	}
	return text
}
