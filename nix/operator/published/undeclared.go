package published

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/revocation"
)

// WarnUndeclared prints a warning for each identity and key to be revoked that the flake does not
// contain, because the operator may have mistyped it. It is not an error, because an identity may
// be revoked after it was removed from the flake.
func (c Cluster) WarnUndeclared(of revocation.Target) {
	t := c.Topology
	if of.ID.TrustDomain() == t.TrustDomain {
		if text := undeclared(t, of.ID); text != "" {
			fmt.Fprintln(c.Err, "warning: the flake has no "+text)
		}
	}
	hosts := slices.Collect(maps.Values(hostKeys(t)))
	for _, key := range of.Keys {
		if !slices.Contains(hosts, key) {
			fmt.Fprintf(c.Err, "warning: no host of the flake has the SSH host key %s: nobody can enrol with it, but certificates that it already obtained stay valid: revoke their host too\n", key)
		}
	}
}

// reservedName is the prefix of the names of provider services.
const reservedName = "florete-"

// undeclared describes an identity that is not in the flake, with a suggestion. If the identity is
// in the flake, it returns "".
func undeclared(t compile.Topology, id spiffe.ID) string {
	var known []string
	switch id.Kind() {
	case spiffe.KindNode:
		known = slices.Collect(maps.Keys(t.Hosts))
	case spiffe.KindUser:
		known = slices.Collect(maps.Keys(t.Users))
	case spiffe.KindOutside:
		known = slices.Collect(maps.Keys(t.Outside))
	case spiffe.KindService:
		known = slices.Collect(maps.Keys(t.Services))
		if node := id.Node(); node != "" {
			if _, ok := t.Hosts[node]; !ok {
				return id.Short()
			}
			for i, service := range known {
				known[i] = node + "/" + service
			}
		}
	default:
		return ""
	}
	kind, name, _ := strings.Cut(id.Short(), "/")
	if slices.Contains(known, name) || strings.HasPrefix(id.Name(), reservedName) {
		return ""
	}
	if meant := terminal.Suggest(name, known); meant != "" {
		return fmt.Sprintf("%s/%s, did you mean %s/%s?", kind, name, kind, meant)
	}
	return kind + "/" + name
}
