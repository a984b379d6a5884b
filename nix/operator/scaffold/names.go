package scaffold

import (
	"fmt"
	"regexp"

	"github.com/florete/florete/internal/spiffe"
)

var group = regexp.MustCompile("^" + spiffe.GroupPattern + "$")

// CheckName returns an error if a name cannot be part of a file name in the folder of the cluster.
// The compiler checks all other rules for names. The error begins with the first argument, such as
// the option from which the name comes.
func CheckName(what, name string) error {
	if !spiffe.IsLabel(name) {
		return fmt.Errorf("%s %.80q: want lower-case letters, digits and inner hyphens", what, name)
	}
	return nil
}

// CheckGroup returns an error if a name is not valid for a host group. Such a name is a path, for
// example eu/fra.
func CheckGroup(name string) error {
	if !group.MatchString(name) {
		return fmt.Errorf("--group %.80q: want names with slashes between them, such as eu/fra", name)
	}
	return nil
}
