package scaffold

import (
	"fmt"
	"regexp"

	"github.com/florete/florete/internal/spiffe"
)

var group = regexp.MustCompile("^" + spiffe.GroupPattern + "$")

// CheckName returns an error if a name cannot be part of a file name in the cluster's folder. The
// argument what names the value in the error. All other rules for names are left to the compiler.
func CheckName(what, name string) error {
	if !spiffe.IsLabel(name) {
		return fmt.Errorf("%s %.80q: want lower-case letters, digits and inner hyphens", what, name)
	}
	return nil
}

// CheckGroup returns an error if a name cannot be that of a host group, which is a path such as
// eu/fra.
func CheckGroup(name string) error {
	if !group.MatchString(name) {
		return fmt.Errorf("--group %.80q: want names with slashes between them, such as eu/fra", name)
	}
	return nil
}
