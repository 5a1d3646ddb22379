package unit_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"carve/unit"

	"pgregory.net/rapid"
)

func TestString(t *testing.T) {
	cases := []struct {
		value fmt.Stringer
		want  string
	}{
		{unit.Bytes(0), "0 B"},
		{unit.Bytes(-512), "-512 B"},
		{unit.Bytes(1023), "1023 B"},
		{25 * unit.MiB, "25.00 MiB"},
		{unit.KiB * 3 / 2, "1.50 KiB"},
		{80 * unit.GB, "74.51 GiB"},
		{3 * unit.TiB, "3.00 TiB"},
		{unit.Bytes(math.MinInt64), "-8388608.00 TiB"},
		{unit.BytesPerSecond(3350e9), "3350 GB/s"},
		{unit.BytesPerSecond(25e9), "25.0 GB/s"},
		{unit.BytesPerSecond(1.5e8), "0.15 GB/s"},
		{unit.FLOPsPerSecond(989e12), "989 TFLOP/s"},
		{unit.FLOPsPerSecond(2250e12), "2.25 PFLOP/s"},
		{unit.FLOPs(6), "6.00 FLOP"},
		{unit.FLOPs(999.7), "1.00 KFLOP"},
		{unit.FLOPs(3.8e25), "38.0 YFLOP"},
		{unit.Watts(700), "700 W"},
		{unit.Seconds(0), "0 s"},
		{unit.Seconds(250e-9), "250 ns"},
		{unit.Seconds(4.2e-6), "4.20 µs"},
		{unit.Seconds(0.0125), "12.5 ms"},
		{unit.Seconds(1.25), "1.25 s"},
		{unit.Seconds(185), "3m05s"},
		{unit.Seconds(12000), "3h20m"},
		{unit.Seconds(1.08e6), "12.5 days"},
		{unit.Count(999), "999"},
		{unit.Count(4096), "4.10K"},
		{unit.Count(8_030_261_248), "8.03B"},
		{unit.Count(15e12), "15.0T"},
	}
	for _, c := range cases {
		if got := c.value.String(); got != c.want {
			t.Errorf("%T(%v) prints %q, want %q", c.value, c.value, got, c.want)
		}
	}
}

func TestCrossingUnits(t *testing.T) {
	if got := unit.Bytes(10e9).At(2.5e9); got != 4 {
		t.Errorf("10 GB at 2.5 GB/s took %v, want 4 s", got)
	}
	if got := unit.Bytes(10e9).Per(4); got != 2.5e9 {
		t.Errorf("10 GB in 4 s is %v, want 2.5 GB/s", got)
	}
	if got := unit.FLOPs(624e12).At(312e12); got != 2 {
		t.Errorf("624 TFLOP at 312 TFLOP/s took %v, want 2 s", got)
	}
	if got := unit.FLOPs(624e12).Per(2); got != 312e12 {
		t.Errorf("624 TFLOP in 2 s is %v, want 312 TFLOP/s", got)
	}
	if got := (3 * unit.GiB / 2).GiB(); got != 1.5 {
		t.Errorf("1.5 GiB is %v GiB", got)
	}
}

func TestParseBytes(t *testing.T) {
	cases := []struct {
		text string
		want unit.Bytes
	}{
		{"0", 0},
		{"4096", 4096},
		{"25MiB", 25 * unit.MiB},
		{" 1.5 GiB ", 3 * unit.GiB / 2},
		{"80GB", 80e9},
		{"7kB", 7000},
		{"12B", 12},
		{"9223372036854775807", math.MaxInt64},
	}
	for _, c := range cases {
		got, err := unit.ParseBytes(c.text)
		if err != nil || got != c.want {
			t.Errorf("ParseBytes(%q) = %d, %v, want %d", c.text, got, err, c.want)
		}
	}
}

func TestParseBytesRefuses(t *testing.T) {
	long := strings.Repeat("9", 4000)
	for _, text := range []string{
		"", "MiB", "-1MiB", "+1MiB", "1e3", "0x10", "NaN", "Inf", "1.5", "0.3KiB", ".5GiB", "5.GiB",
		"1..2MiB", "25mib", "9223372036854775808", "9000000TiB", long, long + "." + long + "GiB", "１MiB",
	} {
		got, err := unit.ParseBytes(text)
		if !errors.Is(err, unit.ErrSize) {
			t.Errorf("ParseBytes(%.20q) = %d, %v, want ErrSize", text, got, err)
		}
		if err != nil && len(err.Error()) > 160 {
			t.Errorf("ParseBytes(%.20q): error of %d bytes", text, len(err.Error()))
		}
	}
}

func TestExactRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := rapid.IntRange(0, 50).Draw(t, "shift")
		want := unit.Bytes(rapid.Int64Range(0, math.MaxInt64>>shift).Draw(t, "bytes") << shift)
		got, err := unit.ParseBytes(want.Exact())
		if err != nil || got != want {
			t.Fatalf("%d is written %q and read back as %d, %v", want, want.Exact(), got, err)
		}
	})
}

func FuzzParseBytes(f *testing.F) {
	for _, seed := range []string{"25MiB", "1.5 GiB", "-1", "1e9", "", "9223372036854775807KiB"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		size, err := unit.ParseBytes(text)
		if err == nil && size < 0 {
			t.Fatalf("ParseBytes(%q) = %d", text, size)
		}
		if err != nil && !errors.Is(err, unit.ErrSize) {
			t.Fatalf("ParseBytes(%q): %v is not ErrSize", text, err)
		}
	})
}
