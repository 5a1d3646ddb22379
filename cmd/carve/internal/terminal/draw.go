package terminal

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bar is a progress bar of a number of columns, filled to the given part from 0 to 1, in eighths of a column.
func Bar(part float64, columns int) string {
	if !(part > 0) {
		part = 0
	}
	eighths := int(math.Round(min(part, 1) * float64(columns) * 8))
	full := eighths / 8
	bar := strings.Repeat("█", full)
	if rest := eighths % 8; rest > 0 {
		bar += string([]rune(" ▏▎▍▌▋▊▉")[rest])
		full++
	}
	return bar + strings.Repeat("░", max(columns-full, 0))
}

// Curve is a small plot of values, a column each; more values than columns are averaged. What is not finite is a gap.
func Curve(values []float64, columns int) string {
	points := squeeze(values, columns)
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range points {
		if finite(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	var out strings.Builder
	for _, v := range points {
		if !finite(v) {
			out.WriteByte(' ')
			continue
		}
		level := 0
		if half := high/2 - low/2; half > 0 { // the whole difference may be more than a number can say
			level = int(math.Round((v/2 - low/2) / half * float64(len(levels)-1)))
		}
		out.WriteRune(levels[level])
	}
	return out.String()
}

// squeeze averages values into at most columns of them.
func squeeze(values []float64, columns int) []float64 {
	if len(values) <= columns || columns <= 0 {
		return values[:min(len(values), max(columns, 0))]
	}
	points := make([]float64, columns)
	for i := range points {
		lo, hi := i*len(values)/columns, (i+1)*len(values)/columns
		for _, v := range values[lo:hi] {
			points[i] += v / float64(hi-lo)
		}
	}
	return points
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Table lays rows out in columns, two spaces apart, without space at the ends of lines. Cells of columns whose heading
// begins with a space are set to the right.
func Table(heading []string, rows [][]string) string {
	widths := make([]int, len(heading))
	for i, h := range heading {
		widths[i] = utf8.RuneCountInString(strings.TrimPrefix(h, " "))
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	var out strings.Builder
	line := func(cells []string) {
		var b strings.Builder
		for i, c := range cells {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if strings.HasPrefix(heading[i], " ") {
				b.WriteString(gap + c + "  ")
			} else {
				b.WriteString(c + gap + "  ")
			}
		}
		out.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
	names := make([]string, len(heading))
	for i, h := range heading {
		names[i] = strings.TrimPrefix(h, " ")
	}
	if strings.Join(names, "") != "" {
		line(names)
	}
	for _, row := range rows {
		line(row)
	}
	return out.String()
}

// Thousands writes a whole number with commas: 1,234,567.
func Thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
