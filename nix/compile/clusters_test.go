package compile

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Two clusters keep members of their stores on one machine, which have ports of their own.
func TestStoresOfClusters(t *testing.T) {
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

// Clusters of one flake are validated together, and compared where they mean one machine or
// one identity.
func TestSeveralClusters(t *testing.T) {
	for name, c := range map[string]struct {
		top, more string
		want      []string
	}{
		"the same machine, apart":    {``, `instance = "blue"; forwarderPort = 4611; providerPort = 4601;`, nil},
		"the same machine":           {``, ``, []string{"hosts.alpha.forwarderPort", "hosts.alpha.instance", "hosts.alpha.providerPort"}},
		"the same port":              {``, `instance = "blue"; providerPort = 4601;`, []string{"hosts.alpha.forwarderPort"}},
		"known by its key alone":     {`trustDomain = "blue.flor";`, `address = "192.0.2.9";`, []string{"hosts.alpha.forwarderPort", "hosts.alpha.instance", "hosts.alpha.providerPort"}},
		"another behind one address": {`trustDomain = "blue.flor";`, `forwarderPort = 4611; sshHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9E5k5185SOn3P436lHIcTOjLtPJlxHkMcCstQc+/J1M";`, nil},
		"another at its address":     {`trustDomain = "blue.flor";`, `sshHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9E5k5185SOn3P436lHIcTOjLtPJlxHkMcCstQc+/J1M";`, []string{"hosts.alpha.sshHostKey"}},
		"another key": {``, `instance = "blue"; forwarderPort = 4611; sshHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9E5k5185SOn3P436lHIcTOjLtPJlxHkMcCstQc+/J1M";`,
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
					}
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v: %s", got, c.want, fmt.Sprint(reports[1].Faults))
			}
		})
	}
}
