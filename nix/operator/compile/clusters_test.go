package compile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestStoresOfClusters checks that two clusters with members of their stores on one machine use
// different ports.
func TestStoresOfClusters(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	for port, want := range map[int]int{4619: 1, 4620: 1, 4621: 1, 4622: 0} {
		src := flake(t, fmt.Sprintf(`let
			stored = port: base // { providers.cert.hosts = [ "alpha" ]; providers.store = { kind = "etcd"; hosts = [ "alpha" ]; inherit port; }; };
			alpha = base.hosts.alpha // { instance = "blue"; forwarderPort = 4611; providerPort = 4601; };
			beta = base.hosts.beta // { instance = "blue"; forwarderPort = 4611; };
		in { a = mkCluster (stored %d // { name = "blue"; hosts = { inherit alpha beta; }; }); b = mkCluster (stored 4620); }`, port))
		reports, err := Validate(t.Context(), src, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, r := range reports {
			for _, f := range r.Faults {
				if f.ID == "FL059" && f.Place == "providers.store.port" {
					got++
				}
			}
		}
		if got != want {
			t.Errorf("port %d beside 4620: %d faults, want %d: %v", port, got, want, reports)
		}
	}
}

// TestSeveralClusters checks that clusters of one flake are validated together, and compared where
// they share a machine or an identity.
func TestSeveralClusters(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	for name, c := range map[string]struct {
		top, more string
		want      []string
	}{
		"the same machine, apart":    {``, `instance = "blue"; forwarderPort = 4611; providerPort = 4601;`, nil},
		"the same machine":           {``, ``, []string{"hosts.alpha.forwarderPort", "hosts.alpha.instance", "hosts.alpha.providerPort"}},
		"the same port":              {``, `instance = "blue"; providerPort = 4601;`, []string{"hosts.alpha.forwarderPort"}},
		"known by its key alone":     {`trustDomain = "blue.flor";`, `address = "192.0.2.9";`, []string{"hosts.alpha.forwarderPort", "hosts.alpha.instance", "hosts.alpha.providerPort"}},
		"another behind one address": {`trustDomain = "blue.flor";`, `forwarderPort = 4611; sshHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9E5k5185SOn3P436lHIcTOjLtPJlxHkMcCstQc+/J1";`, nil},
		"a key with a fault":         {``, `instance = "blue"; forwarderPort = 4611; providerPort = 4601; sshHostKey = "ssh-ed25519 AAAA";`, nil},
		"another at its address":     {`trustDomain = "blue.flor";`, `sshHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9E5k5185SOn3P436lHIcTOjLtPJlxHkMcCstQc+/J1";`, []string{"hosts.alpha.sshHostKey"}},
		"another key": {``, `instance = "blue"; forwarderPort = 4611; sshHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9E5k5185SOn3P436lHIcTOjLtPJlxHkMcCstQc+/J1";`,
			[]string{"hosts.alpha.sshHostKey"}},
	} {
		t.Run(name, func(t *testing.T) {
			src := flake(t, `let
				merge = a: b: if builtins.isAttrs a && builtins.isAttrs b then a // builtins.mapAttrs (n: v: if a ? ${n} then merge a.${n} v else v) b else b;
				blue = merge base { name = "blue"; `+c.top+` hosts.beta = { instance = "blue"; forwarderPort = 4611; }; hosts.alpha = { `+c.more+` }; };
			in { a = mkCluster blue; b = mkCluster base; }`)
			reports, err := Validate(t.Context(), src, time.Now())
			if err != nil || len(reports) != 2 {
				t.Fatalf("%d reports, %v", len(reports), err)
			}
			var got []string
			for _, r := range reports {
				for _, f := range r.Faults {
					if f.ID == "FL059" {
						got = append(got, f.Place)
						if !strings.Contains(f.Problem, "in cluster blue host alpha, of the same ") {
							t.Errorf("want which host it is, and by what: %s", f.Problem)
						}
					}
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v: %s", got, c.want, fmt.Sprint(reports[1].Faults))
			}
		})
	}
}

// TestClustersTogether checks that clusters of one flake agree on names, trust domains and each
// other's identities.
func TestClustersTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	blue := `trustDomain = "blue.flor"; hosts = apart; `
	federated := func(identity, service string) string {
		return `federated.blue = { trustDomain = "blue.flor"; endpoint = "https://blue.example.org/"; endpointID = "spiffe://blue.flor/service/alpha/florete-provider-federation";
			bundle = ''{"keys":[{"use":"x509-svid"}],"spiffe_sequence":1}''; identities."` + identity + `".roles = [ "reader" ];
			services.` + service + ` = { address = "192.0.2.9:4610"; port = 80; roles = [ "reader" ]; }; };
			providers = base.providers // { federation.hosts = [ "alpha" ]; };`
	}
	// Another cluster of the same trust domain, without anything that ours has.
	other := `services.tickets = { host = "beta"; port = 1; }; roles = base.roles // { reader.services = [ "tickets" ]; };
		hosts = apart // { beta = apart.beta // { users = [ "bob" ]; }; };`
	bob := `users.bob.roles = [ "reader" ];`
	declared := func(identity, service string) string {
		return `clusters.blue = { identities."` + identity + `".roles = [ "reader" ]; services."` + service + `" = { address = "192.0.2.9:4610"; port = 80; roles = [ "reader" ]; }; };`
	}
	// Our ingress serves the public name of a service of the other cluster.
	entrance := `clusters.blue.services.tickets = { address = "192.0.2.9:4610"; port = 80; tlsName = "tickets.example.org"; roles = [ "edge" ]; };
		roles = base.roles // { edge.services = [ "wiki" ]; };
		hosts = base.hosts // { front = base.hosts.beta // { address = "192.0.2.7"; capabilities = [ "ingress" ]; roles = [ "edge" ];
			sshHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9E5k5185SOn3P436lHIcTOjLtPJlxHkMcCstQc+/J1"; }; };`
	admits := `clusters.golden.identities."node/front".roles = [ "reader" ];`
	// A service of our cluster signs people in at the issuer of the other cluster.
	signIn := `clusters.blue.oidc = { issuer = "https://auth.example.org"; hosts.beta = "192.0.2.2:4613"; };
		services = base.services // { wiki = base.services.wiki // { sso = { mode = "oidc"; cluster = "blue"; redirectURIs = [ "https://wiki.example.org/callback" ]; }; }; };`
	issuer := func(more string) string {
		return strings.Replace(other+bob, "services.tickets =", `clusters.golden.clients.wiki = { nodes.beta = base.hosts.beta.sshHostKey; redirectURIs = [ "https://wiki.example.org/callback" ]; `+more+` };
			providers = base.providers // { oidc = { hosts = [ "beta" ]; issuer = "https://auth.example.org"; }; }; services.tickets =`, 1)
	}
	for name, c := range map[string]struct{ ours, theirs, want string }{
		"signs in at the other":       {signIn, issuer(""), ""},
		"signs in without a client":   {signIn, other + bob, `FL187 services.wiki.sso: cluster blue of this flake has no such client for spiffe://golden.flor/node/beta; declare the same client there: clusters.golden.clients."wiki"`},
		"signs in with other groups":  {signIn, issuer(`allowedGroups = [ "support" ]; generation = 2;`), `FL187 services.wiki.sso: cluster blue of this flake has another client, which differs in generation, allowedGroups; declare`},
		"a client that nobody has":    {"", strings.Replace(issuer(""), "clients.wiki", "clients.wigi", 1), `FL128 clusters.golden.clients: cluster golden of this flake does not have spiffe://golden.flor/service/wigi; did you mean "service/wiki"?`},
		"serves a name of the other":  {entrance, other + bob + admits, ""},
		"serves a name in vain":       {entrance, other + bob, `FL177 clusters.blue.services: cluster blue of this flake gives no role to the ingress that serves spiffe://golden.flor/service/tickets: spiffe://golden.flor/node/front; give it a role there: clusters.golden.identities."node/front".roles`},
		"names the other":             {declared("user/bob", "tickets"), other + bob, ""},
		"an identity that it has not": {declared("user/bop", "tickets"), other + bob, `FL128 clusters.blue.identities: cluster blue of this flake does not have spiffe://golden.flor/user/bop; did you mean "user/bob"?`},
		"a service that it has not":   {declared("user/bob", "kiwi"), other + bob, `FL128 clusters.blue.services: cluster blue of this flake does not have spiffe://golden.flor/service/kiwi`},
		"names one that is not here":  {declared("user/bop", "kiwi"), other + bob + `name = "green";`, ""},
		"names one of another domain": {declared("user/bob", "tickets"), other + bob + `trustDomain = "blue.flor";`, `FL147 clusters.blue: cluster blue of this flake has another trust domain "blue.flor"`},
		"a user of both":              {declared("user/bob", "tickets"), other + `users = { bob.roles = [ "reader" ]; ann.roles = [ "reader" ]; };`, `FL139 clusters.blue: this cluster and blue both have spiffe://golden.flor/user/ann`},
		"of one trust domain":         {``, `services = { docs = { host = "beta"; port = 1; }; }; roles = base.roles // { reader.services = [ "docs" ]; }; hosts = apart;`, ""},
		"hidden services":             {``, `services.wiki = { host = "beta"; port = 1; visibility = "host"; }; roles = removeAttrs base.roles [ "reader" ]; users = { }; hosts = apart;`, ""},
		"the same service":            {``, `hosts = apart;`, "FL127 services.wiki: cluster golden has another service of the same identity spiffe://golden.flor/service/wiki"},
		"the same in two domains":     {``, blue, ""},
		"the same name":               {``, blue + `name = "golden";`, `FL125 name: another output of the flake is the cluster "golden"`},
		"other roots of a domain":     {``, `services = { }; roles = removeAttrs base.roles [ "reader" ]; users = { }; hosts = apart; trust = base.trust // { roots = [ "-----BEGIN CERTIFICATE-----\nYmx1ZQ==\n-----END CERTIFICATE-----\n" ]; };`, `FL126 trust.roots: cluster golden has none of these roots, and the same trust domain "golden.flor"`},
		"each has the other":          {federated("user/ann", "wiki"), blue, ""},
		"an identity that is none":    {federated("user/anne", "wiki"), blue, `FL128 federated.blue.identities: cluster blue of this flake does not have spiffe://blue.flor/user/anne; did you mean "user/ann"?`},
		"a service that is none":      {federated("user/ann", "kiwi"), blue, `FL128 federated.blue.services: cluster blue of this flake does not have spiffe://blue.flor/service/kiwi`},
		"of nobody in the flake":      {federated("user/anne", "kiwi"), `trustDomain = "red.flor"; hosts = apart;`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := flake(t, `let
				apart = builtins.mapAttrs (_: h: h // { instance = "blue"; forwarderPort = 4611; providerPort = 4601; }) base.hosts;
			in { a = mkCluster (base // { `+c.ours+` }); b = mkCluster (base // { name = "blue"; } // { `+c.theirs+` }); }`)
			reports, err := Validate(t.Context(), src, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range reports {
				for _, f := range r.Faults {
					if f.ID >= "FL125" {
						got = append(got, f.String())
					}
				}
			}
			if len(got) > 1 || (c.want == "") != (len(got) == 0) || len(got) == 1 && !strings.HasPrefix(got[0], c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
