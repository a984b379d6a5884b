package compile

import (
	"fmt"
	"slices"
	"testing"
)

// TestLines checks that three or more faults that differ only by their places are one line with a
// limited number of places.
func TestLines(t *testing.T) {
	fault := func(place string) Fault {
		return Fault{"FL041", "warning", place, "it may be reached by", "no principal", "name it in a role"}
	}
	other := Fault{"FL002", "error", "b", "want a set, found", "3", "write { }"}
	many := []Fault{}
	for i := range 23 {
		many = append(many, fault(fmt.Sprintf("s%02d", i)))
	}
	const said = "it may be reached by no principal; name it in a role"
	for name, c := range map[string]struct {
		faults []Fault
		want   []string
	}{
		"two":   {[]Fault{fault("a"), other, fault("c")}, []string{"FL041 warning: a: " + said, "FL002 b: want a set, found 3; write { }", "FL041 warning: c: " + said}},
		"three": {[]Fault{fault("a"), other, fault("c"), fault("d")}, []string{"FL041 warning: a, c, d: " + said, "FL002 b: want a set, found 3; write { }"}},
		"twice": {[]Fault{other, other, other}, []string{"FL002 b: want a set, found 3; write { }"}},
		"many":  {many, []string{"FL041 warning: s00, s01, s02, s03, s04, s05, s06, s07, s08, s09, s10, s11, s12, s13, s14, s15, s16, s17, s18, s19 and 3 more: " + said}},
	} {
		if got := Lines(c.faults); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
