package compile

import (
	"fmt"
	"testing"
)

// TestNoHost checks that a similar name is suggested, and that otherwise a few hosts are listed and
// many are counted.
func TestNoHost(t *testing.T) {
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("web-%d", i))
	}
	few := []string{"forge", "anvil"}
	for _, c := range []struct {
		host  string
		known []string
		want  string
	}{
		{"froge", few, `cluster c has no host "froge", did you mean "forge"?`},
		{"tongs", few, `cluster c has no host "tongs", it has anvil, forge`},
		{"wbe-17", many, `cluster c has no host "wbe-17", did you mean "web-17"?`},
		{"tongs", many, `cluster c has no host "tongs", it has 300 others`},
	} {
		if got := NoHost("c", c.host, c.known).Error(); got != c.want {
			t.Errorf("got %s\nwant %s", got, c.want)
		}
	}
}
