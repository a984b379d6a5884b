package compile

import (
	"fmt"
	"slices"
	"strings"
)

// Nearest is the name that was probably meant, "" when none is like it.
func Nearest(name string, known []string) string {
	best, nearest := "", 3
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := edits(name, k); d < nearest && d < len(name) {
			best, nearest = k, d
		}
	}
	return best
}

// NoHost is the error of who asks for a host that a cluster does not have.
func NoHost(cluster, host string, known []string) error {
	remedy := fmt.Sprintf("it has %d others", len(known))
	if near := Nearest(host, known); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	} else if len(known) <= 20 {
		remedy = "it has " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
	}
	return fmt.Errorf("cluster %s has no host %q, %s", cluster, host, remedy)
}

// edits is how many letters must be inserted, dropped or replaced; 3 and more are
// all the same.
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
