package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/florete/florete/internal/terminal"
)

// NoHost returns the error to print if the cluster does not have a host of the given name. The
// error suggests a similar name from known, or lists these names if they are few.
func NoHost(cluster, host string, known []string) error {
	remedy := fmt.Sprintf("it has %d others", len(known))
	if near := terminal.Suggest(host, known); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	} else if len(known) <= 20 {
		remedy = "it has " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
	}
	return fmt.Errorf("cluster %s has no host %q, %s", cluster, host, remedy)
}
