package unit

import (
	"math"
	"strconv"
)

// Count is a number of things: parameters, tokens, elements.
type Count int64

// String prints c as the field does: "124", "4.10K", "8.03B", "15.0T".
func (c Count) String() string {
	value := float64(c)
	if math.Abs(value) < 1000 {
		return strconv.FormatInt(int64(c), 10)
	}
	suffixes := [...]string{"", "K", "M", "B", "T"}
	i := 0
	for ; i < len(suffixes)-1 && math.Abs(value) >= 999.5; i++ {
		value /= 1000
	}
	return figures(value) + suffixes[i]
}
