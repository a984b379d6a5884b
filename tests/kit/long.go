package kit

import "os"

// Often returns long in tests/run --long, where the variable FLORETE_LONG is set, and otherwise
// short. A test calls it for a number of repetitions.
func Often(long, short int) int {
	if os.Getenv("FLORETE_LONG") != "" {
		return long
	}
	return short
}
