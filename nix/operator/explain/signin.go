package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/nix/operator/compile"
)

// SignIn tells who may sign in to a service, and what the service learns about these people. The
// zero SignIn stands for a service to which everybody can sign in, and which gets groups and claims
// as the issuer has them.
type SignIn struct {
	// Cluster is the other cluster at whose issuer people sign in. It is empty for the issuer of this
	// cluster.
	Cluster string `json:"cluster,omitempty"`
	// Allowed lists the groups whose people may sign in, as the issuer calls them, sorted. If it is
	// empty, everybody may.
	Allowed []string `json:"allowed,omitempty"`
	// Groups contains the groups that the service sees, by the names that it knows, with the groups
	// of the issuer. If it is empty, the service sees the groups of the issuer.
	Groups map[string][]string `json:"groups,omitempty"`
	// Claims contains further claims in the tokens of the service, with the claims that they copy.
	Claims map[string]string `json:"claims,omitempty"`
}

// signIn returns the sign-in of a service. It returns nil if there is nothing to tell.
func signIn(s compile.Service) *SignIn {
	if s.SSO.Mode == "none" || s.SSO.Cluster == "" && len(s.SSO.AllowedGroups)+len(s.SSO.Groups)+len(s.SSO.Claims) == 0 {
		return nil
	}
	return &SignIn{s.SSO.Cluster, slices.Sorted(slices.Values(s.SSO.AllowedGroups)), s.SSO.Groups, s.SSO.Claims}
}

// String returns the sign-in as text, one line for each statement. The text of nil is empty.
func (s *SignIn) String() string {
	if s == nil {
		return ""
	}
	var b strings.Builder
	if s.Cluster != "" {
		fmt.Fprintf(&b, "people sign in to it at the issuer of cluster %s\n", s.Cluster)
	}
	if len(s.Allowed) > 0 {
		fmt.Fprintf(&b, "only people in %s can sign in to it\n", strings.Join(s.Allowed, " or "))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Groups)) {
		fmt.Fprintf(&b, "it sees people in %s as group %s\n", strings.Join(slices.Sorted(slices.Values(s.Groups[name])), " or "), name)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Claims)) {
		fmt.Fprintf(&b, "its tokens have claim %s, a copy of %s\n", name, s.Claims[name])
	}
	return b.String()
}
