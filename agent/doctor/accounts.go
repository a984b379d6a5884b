package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/user"
	"slices"
	"strings"

	"github.com/florete/florete/internal/nss"
	"github.com/florete/florete/internal/spiffe"
)

// accounts are those of this host that the manifest names, of services and of people:
// whom files are delivered to, and who acts under which identity.
func (h *host) accounts(context.Context) (string, []Finding) {
	var found []Finding
	missing := h.missing()
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		kind := "--system"
		if strings.HasPrefix(missing[name], string(spiffe.KindUser)+"/") { // a person signs in
			kind = "--create-home"
		}
		found = append(found, fix(fmt.Sprintf("there is no account %s, which is of %s", name, missing[name]), "useradd "+kind+" --user-group "+name))
	}
	return fmt.Sprintf("%d missing", len(missing)), found
}

// missing are names of accounts that do not exist, with what they are for.
func (h *host) missing() map[string]string {
	missing := map[string]string{}
	want := func(name, of string) {
		var unknown user.UnknownUserError
		if _, err := nss.Lookup(name); name != "" && errors.As(err, &unknown) {
			missing[name] = of
		}
	}
	for _, n := range h.manifest.Needs {
		want(n.Deliver.Owner, "need "+n.ID)
	}
	for _, c := range h.manifest.Forwarder.Callers {
		for _, name := range c.Users {
			want(name, c.ID.Short())
		}
	}
	return missing
}
