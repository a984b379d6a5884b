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

// accounts checks that the host has the Unix accounts that its manifest names, as owners of files
// and as callers of services.
func (h *host) accounts(context.Context) (string, []Finding) {
	var found []Finding
	missing := h.missing()
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		problem := fmt.Sprintf("there is no account %s, which is of %s", name, missing[name])
		if strings.HasPrefix(name, h.Instance.Unit("provider-")) { // the account is created with its unit
			found = append(found, do(problem, install))
			continue
		}
		kind := "--system"
		if strings.HasPrefix(missing[name], string(spiffe.KindUser)+"/") { // the account of a person who signs in
			kind = "--create-home"
		}
		found = append(found, fix(problem, "useradd "+kind+" --user-group "+name))
	}
	return fmt.Sprintf("%d missing", len(missing)), found
}

// missing returns the missing accounts. The key of the map is the name of an account, and the value
// is its purpose.
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
