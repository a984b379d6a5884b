package scaffold

import (
	"fmt"
	"regexp"

	"github.com/florete/florete/internal/spiffe"
)

var group = regexp.MustCompile("^" + spiffe.GroupPattern + "$")

// CheckName returns an error if name cannot be part of a file name in the cluster's folder. The
// compiler later checks the name completely.
func CheckName(what, name string) error {
	if !spiffe.IsLabel(name) {
		return fmt.Errorf("%s %.80q: want lower-case letters, digits and inner hyphens", what, name)
	}
	return nil
}

// CheckGroup returns an error if name cannot be the name of a host group, which is a folder.
func CheckGroup(name string) error {
	if !group.MatchString(name) {
		return fmt.Errorf("--group %.80q: want names with slashes between them, such as eu/fra", name)
	}
	return nil
}
