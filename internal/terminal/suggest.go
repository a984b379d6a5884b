package terminal

import (
	"slices"
	"strings"
)

// Suggest returns the name in known that a person probably meant when typing name. It ignores case,
// and returns "" if no known name is similar.
func Suggest(name string, known []string) string {
	best, nearest := "", 3
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := edits(strings.ToLower(name), strings.ToLower(k)); d < nearest && d < len(name) {
			best, nearest = k, d
		}
	}
	return best
}

// edits returns the number of letters that must be inserted, deleted or replaced to turn a into b.
// If there are more than two, the result is some number of at least 3.
func edits(a, b string) int {
	if d := len(a) - len(b); d > 2 || d < -2 {
		return 3
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
