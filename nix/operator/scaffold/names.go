package scaffold

import (
	"fmt"
	"regexp"

	"github.com/florete/florete/internal/spiffe"
)

var group = regexp.MustCompile("^" + spiffe.GroupPattern + "$")

// CheckName returns an error if a name cannot be part of a file name in the cluster's folder. The
// compiler later applies all rules for names.
func CheckName(what, name string) error {
	if !spiffe.IsLabel(name) {
		return fmt.Errorf("%s %.80q: want lower-case letters, digits and inner hyphens", what, name)
	}
	return nil
}

// CheckGroup returns an error if a name cannot be the name of a host group. A group is a folder.
func CheckGroup(name string) error {
	if !group.MatchString(name) {
		return fmt.Errorf("--group %.80q: want names with slashes between them, such as eu/fra", name)
	}
	return nil
}
