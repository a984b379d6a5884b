package explain

import (
	"testing"

	"github.com/florete/florete/nix/operator/compile"
)

// TestHoldersOfHosts checks which hosts have a secret that a group of hosts or hosts with tags read.
func TestHoldersOfHosts(t *testing.T) {
	a := New(compile.Topology{
		Hosts: map[string]compile.Host{
			"alpha": {Group: "eu", Tags: []string{"db"}},
			"beta":  {Group: "eu/fra", Tags: []string{"db", "ssd"}},
			"gamma": {Group: "europe", Tags: []string{"ssd"}},
		},
		Secrets: map[string]compile.Secret{
			"backup": {Generate: "password", PerHost: true, Readers: []string{"tags/db,ssd", "group/eu", "group/eu/fra", "node/gamma"}},
		},
		Providers: map[string]compile.Provider{"secret": {Hosts: []string{"forge"}}},
	})
	h, err := a.WhoHas("secret/backup")
	if err != nil {
		t.Fatal(err)
	}
	want := "secret backup, password that forge makes for each host, is delivered to\n" +
		"  group/eu on alpha, beta\n  group/eu/fra on beta\n  node/gamma on gamma\n  tags/db,ssd on beta\n"
	if got := h.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
