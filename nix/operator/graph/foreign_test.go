package graph

import (
	"strings"
	"testing"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/tests/kit"
)

// TestForeign checks that foreign identities and services are drawn with their trust domains, and
// around a host if its services or people are connected with them.
func TestForeign(t *testing.T) {
	whole, err := New(compile.Snapshot{Topology: compile.Topology{
		Hosts: map[string]compile.Host{"forge": {Services: []string{"wiki"}}, "lab": {}, "laptop": {Users: []string{"bob"}}},
		Services: map[string]compile.Service{
			"wiki": {IDs: []spiffe.ID{kit.ID("service/wiki")}, Hosts: []string{"forge"}, Published: true, Visibility: "cluster"},
		},
		Users: map[string]compile.User{"bob": {ID: kit.ID("user/bob"), Roles: []string{"customer"}, Hosts: []string{"laptop"}}},
		Roles: map[string]compile.Role{"reader": {Services: []string{"wiki"}}, "customer": {}},
		Federated: map[string]compile.Federated{
			"blue":  {TrustDomain: "blue.example", Elsewhere: compile.Elsewhere{Identities: map[spiffe.ID][]string{kit.IDIn("blue.example", "user/bob"): {"reader"}}}},
			"green": {TrustDomain: "green.example", Elsewhere: compile.Elsewhere{Services: map[spiffe.ID][]string{kit.IDIn("green.example", "service/tickets"): {"customer"}}}},
			"idle":  {TrustDomain: "idle.example"},
		},
		Clusters: map[string]compile.Elsewhere{"red": {
			Identities: map[spiffe.ID][]string{kit.ID("user/eve"): {"reader"}},
			Services:   map[spiffe.ID][]string{kit.ID("service/gate/orders"): {"customer"}},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]map[string]bool{
		"":       {"user/bob of blue.example": true, "tickets of green.example": true, "idle.example": false, "user/eve of cluster red": true, "gate/orders of cluster red": true},
		"forge":  {"user/bob of blue.example": true, "tickets of green.example": false, "user/eve of cluster red": true, "gate/orders of cluster red": false},
		"laptop": {"user/bob of blue.example": false, "tickets of green.example": true, "user/eve of cluster red": false, "gate/orders of cluster red": true},
	} {
		c := whole
		if host != "" {
			if c, err = whole.Around(host); err != nil {
				t.Fatal(err)
			}
		}
		for form, draw := range formats {
			for part, is := range want {
				if strings.Contains(string(draw(c)), part) != is {
					t.Errorf("%s around %q: %q is drawn: %v, want %v", form, host, part, !is, is)
				}
			}
		}
	}
}
