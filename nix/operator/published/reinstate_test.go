package published

import (
	"slices"
	"testing"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/tests/kit"
)

// TestRequestsOf checks the commands with which hosts request the certificates of a reinstated
// identity: of a node, a user on several hosts, and a relay.
func TestRequestsOf(t *testing.T) {
	topology := compile.Topology{TrustDomain: kit.Domain, Hosts: map[string]compile.Host{
		"gate":   {ID: kit.ID("node/gate"), Relay: true, Users: []string{"ann"}},
		"laptop": {ID: kit.ID("node/laptop"), Users: []string{"ann"}},
	}}
	for _, c := range []struct {
		id   spiffe.ID
		want []string
	}{
		{kit.ID("node/laptop"), []string{"ssh root@laptop flor refetch cert-node"}},
		{kit.ID("user/ann"), []string{"ssh root@gate flor refetch cert-user-ann", "ssh root@laptop flor refetch cert-user-ann"}},
		{kit.ID("vertex/gate"), []string{"ssh root@gate flor refetch cert-vertex"}},
		{kit.ID("vertex/laptop"), nil},
		{kit.IDIn("blue.example", "vertex/gate"), nil},
	} {
		if got := requestsOf(topology, c.id); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.id, got, c.want)
		}
	}
}
