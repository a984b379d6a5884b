package explain

import (
	"testing"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/tests/kit"
)

// TestEntries checks what is said of callers without an identity: strangers at public ports, and
// outside callers.
func TestEntries(t *testing.T) {
	a := New(compile.Topology{
		TrustDomain: "demo.flor",
		Hosts: map[string]compile.Host{
			"gate":  {ID: kit.ID("node/gate"), Roles: []string{"edge", "florete-outside-scanner"}, Capabilities: []string{"ingress"}},
			"gate2": {ID: kit.ID("node/gate2"), Capabilities: []string{"ingress"}},
			"forge": {ID: kit.ID("node/forge"), Services: []string{"mail", "mqtt"}},
		},
		Services: map[string]compile.Service{
			"mail": {
				IDs: []spiffe.ID{kit.ID("service/mail")}, Hosts: []string{"forge"}, Published: true, Visibility: "public",
				Ports:       map[string]compile.Port{"smtp": {ListenPort: 25, Protocols: []string{"tcp"}}, "names": {ListenPort: 53, Protocols: []string{"tcp", "udp"}}},
				PublicPorts: map[string]compile.PublicPort{"smtp": {Port: 25, From: []string{"192.0.2.0/24"}}, "names": {Port: 53}},
			},
			"mqtt": {
				IDs: []spiffe.ID{kit.ID("service/mqtt")}, Hosts: []string{"forge"}, Published: true, Visibility: "public", ListenPort: 1883,
				PublicPorts: map[string]compile.PublicPort{"tls": {Port: 8883, ServerNames: []string{"mq.example.org"}, Hosts: []string{"gate", "gate2"}}},
			},
		},
		Outside: map[string]compile.Outside{
			"sensor":  {ID: kit.ID("outside/sensor"), Via: "gate", Role: "florete-outside-scanner"},
			"printer": {ID: kit.ID("outside/printer"), Addresses: []string{"10.0.5.30"}, Via: "gate", Role: "florete-outside-scanner"},
			"scanner": {Addresses: []string{"10.0.5.20"}, Via: "gate", Role: "florete-outside-scanner"},
		},
		Roles: map[string]compile.Role{
			"edge":                    {Services: []string{"mail", "mqtt"}},
			"florete-outside-scanner": {Services: []string{"mqtt"}},
		},
	})
	for target, want := range map[string]string{
		"mail":      "anyone reaches its port names at TCP and UDP port 53 of gate\nanyone in 192.0.2.0/24 reaches its port smtp at TCP port 25 of gate\n",
		"mail:smtp": "anyone in 192.0.2.0/24 reaches its port smtp at TCP port 25 of gate\n",
		"mqtt": "anyone reaches it at TCP port 8883 of gate as mq.example.org\n" +
			"outside caller printer, proven by its certificate of outside/printer and from 10.0.5.30, reaches it at TCP port 1883 of gate\n" +
			"outside caller scanner, known by its address alone (10.0.5.20), reaches it at TCP port 1883 of gate\n" +
			"outside caller sensor, proven by its certificate of outside/sensor, reaches it at TCP port 1883 of gate\n",
	} {
		if got := a.WhoCan(target).Edge.String(); got != want {
			t.Errorf("%s:\n%swant\n%s", target, got, want)
		}
	}
}
