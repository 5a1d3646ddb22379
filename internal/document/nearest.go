package document

import (
	"strings"
	"unicode"
)

// Nearest returns the known name that looks most like a mistyped one, and whether any looks like it at
// all: it contains the name (h200, dgx-h200), or at most a third of the letters are inserted, dropped,
// changed or swapped. Case and the difference between "-", "_" and "." do not count. Of equals the first wins.
func Nearest(name string, known []string) (string, bool) {
	const longest = 64
	if len(name) > longest || len(name) < 2 {
		return "", false
	}
	if near, ok := containing(fold(name), known); ok {
		return near, true
	}
	best, found := "", false
	limit, folded := max(len(name)/3, 1), fold(name)
	for _, candidate := range known {
		if d := distance(folded, fold(candidate)); d <= limit && (!found || d < limit) {
			best, found, limit = candidate, true, d
		}
	}
	return best, found
}

// containing returns the shortest known name that contains a folded one of three letters or more.
func containing(name string, known []string) (best string, found bool) {
	for _, candidate := range known {
		if len(name) >= 3 && strings.Contains(fold(candidate), name) && (!found || len(candidate) < len(best)) {
			best, found = candidate, true
		}
	}
	return best, found
}

// Suggest returns "; did you mean X?" for the nearest known name, or a list of all of them.
func Suggest(name string, known []string) string {
	if near, ok := Nearest(name, known); ok {
		return "; did you mean " + near + "?"
	}
	return "; use " + Either(known)
}

// Either joins names as a sentence does: "a, b or c".
func Either(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// fold removes the differences that do not make two names different to a reader.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_. ", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// distance counts the insertions, deletions, substitutions and swaps of neighbours that turn a into b
// (optimal string alignment, Wagner-Fischer with one row more for the swaps).
func distance(a, b string) int {
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, old, row = old, row, older
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

// Clip shortens text to what fits an error line.
func Clip(text string) string {
	const limit = 60
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}

// Misspelt returns the known name that a name is one slip away from, two for a long name, and whether
// there is one. It is stricter than Nearest: for keys that may also be right and merely unknown.
func Misspelt(name string, known []string) (string, bool) {
	near, ok := Nearest(name, known)
	slips := 1
	if len(name) >= 10 {
		slips = 2
	}
	return near, ok && len(name) >= 6 && distance(fold(name), fold(near)) <= slips
}
