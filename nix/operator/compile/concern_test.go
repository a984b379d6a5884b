package compile

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestWhatConcernsAHost checks that faults withhold a host's documents exactly if they concern the
// host.
func TestWhatConcernsAHost(t *testing.T) {
	// Cert is provided by alpha, wiki runs on beta and is reached by ann there; gamma and
	// delta have nothing to do with either.
	prelude := `let
		key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + builtins.substring 8 42 ((import ../../lib/names.nix).sri name);
		base = import ` + golden + `/base.nix { inherit key; };
		inherit ((import ` + golden + `/merge.nix)) merge;
		wide = merge base {
			hosts.gamma = { address = "192.0.2.3"; sshHostKey = key "gamma"; };
			hosts.delta = { address = "192.0.2.4"; sshHostKey = key "delta"; users = [ "dan" ]; };
			users.dan.roles = [ "guest" ];
			roles.guest.services = [ "blog" ];
			services.blog = { host = "gamma"; port = 1; };
		};
		of = change: builtins.mapAttrs (_: map (f: f.id)) ((import ../../default.nix).mkCluster (merge wide change)).faultsOf;
	in `
	cases := map[string]map[string]string{
		`{ }`:                                       {},
		`{ hosts.beta.prot = 1; }`:                  {"beta": "FL001"},
		`{ hosts.gamma.prot = 1; }`:                 {"gamma": "FL001", "delta": "FL001"}, // delta calls gamma
		`{ hosts.gamma.tags = [ 1 ]; }`:             {"gamma": "FL002", "delta": "FL002"},
		`{ users.dan.role = 1; }`:                   {"delta": "FL001"},
		`{ users.dan.roles = [ "guest" "gest" ]; }`: {"delta": "FL013"},
		`{ clusters.blue.identities."user/bob".roles = [ "guest" "gest" ]; }`: {"gamma": "FL013"}, // who reaches blog there
		`{ services.blog.prot = 1; }`:                                         {"gamma": "FL001", "delta": "FL001"},
		`{ roles.guest.serviceGroups = [ "x" ]; }`:                            {"gamma": "FL014", "delta": "FL014"},
		`{ roles.reader.serviceGroups = [ "x" ]; }`:                           {"beta": "FL014"},
		`{ services.blog.host = "gama"; }`:                                    {"beta": "FL010", "gamma": "FL010", "delta": "FL010"}, // may be meant for anyone
		`{ hosts.delta.address = "192.0.2.3"; }`:                              {"gamma": "FL020"},                                    // the later name
		`{ trust.roots = [ ]; }`:                                              {"beta": "FL007", "gamma": "FL007", "delta": "FL007"},
		`{ hosts.alpha.prot = 1; }`:                                           {"beta": "FL001", "gamma": "FL001", "delta": "FL001"}, // everyone's provider
		// Fits no host, and may be meant for anyone.
		`{ services.late = { port = 2; replicas = 1; placement.tags = [ "none" ]; }; }`: {"beta": "FL032", "gamma": "FL032", "delta": "FL032"},
		// Nobody waits for a warning, nor for a role that leads to what is not published.
		`{ services.blog2 = { host = "gamma"; port = 2; }; }`:                                                            {"alpha": "FL041"},
		`{ services.cron = { host = "gamma"; port = 2; visibility = "host"; }; roles.clock.services = [ "cron" "x" ]; }`: {"alpha": "FL011"},
		// A name that reads like two is one name.
		`{ services.x = { hosts = [ "gamma delta" ]; port = 2; }; services.y = { hosts = [ "gamma" "delta" ]; port = 3; prot = 1; }; roles.guest.services = [ "blog" "y" ]; }`: {
			"alpha": "FL010 FL001", "beta": "FL010", "gamma": "FL010 FL001", "delta": "FL010 FL001"},
	}
	concerned := evalEach[map[string][]string](t, prelude, "of ", slices.Collect(maps.Keys(cases)))
	for change, want := range cases {
		got := concerned[change]
		all := maps.Clone(want)
		if _, told := want["alpha"]; !told && len(want) > 0 { // what a provider may answer concerns everyone
			all["alpha"] = slices.Collect(maps.Values(want))[0]
		}
		for host, ids := range got {
			if strings.Join(ids, " ") != all[host] {
				t.Errorf("%s: %s is concerned by %v, want %s", change, host, ids, all[host])
			}
		}
	}
}

// TestInstancesAreIsolated checks that a host in two clusters counts as two hosts: the documents of
// one cluster contain nothing of the other.
func TestInstancesAreIsolated(t *testing.T) {
	src := flake(t, `let
		key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + builtins.substring 8 42 ((import ./nix/lib/names.nix).sri name);
		cluster = name: mkCluster (base // {
			inherit name;
			trustDomain = "${name}.flor";
			trust = { roots = [ "-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n" ]; signingKeys = base.trust.signingKeys; };
			hosts = { both = { address = "192.0.2.9"; sshHostKey = key "both"; users = [ "ann-${name}" ]; };
				"of-${name}" = { address = "192.0.2.1"; sshHostKey = key name; }; };
			services."wiki-${name}" = { host = "both"; port = 8080; };
			users."ann-${name}".roles = [ "reader" ];
			roles = base.roles // { reader.services = [ "wiki-${name}" ]; };
			providers.cert.hosts = [ "of-${name}" ];
		});
	in { crimson = cluster "crimson"; azure = cluster "azure"; }`)
	for cluster, other := range map[string]string{"crimson": "azure", "azure": "crimson"} {
		src.Cluster = cluster
		c, err := Compile(t.Context(), src)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Documents) != 2 || len(c.Documents["both"]) != 1 {
			t.Fatalf("%s: got %d hosts", cluster, len(c.Documents))
		}
		for host, documents := range c.Documents {
			for _, d := range documents {
				envelope, body, _ := d.Bytes()
				if text := string(envelope) + string(body); strings.Contains(text, other) || !strings.Contains(text, cluster) {
					t.Errorf("the %s of %s in %s knows of %s", d.Envelope.Kind, host, cluster, other)
				}
			}
		}
	}
}

// TestPlacement checks the laws of placement on eight hosts and variants of them.
func TestPlacement(t *testing.T) {
	prelude := `let
		inherit (builtins) all attrNames concatLists elem filter genList length listToAttrs map mapAttrs;
		key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + builtins.substring 8 42 ((import ../../lib/names.nix).sri name);
		base = import ` + golden + `/base.nix { inherit key; };
		host = i: { name = "h${toString i}"; value = { address = "192.0.2.${toString (i + 10)}"; sshHostKey = key (toString i); }; };
		run = n: strategy: mapAttrs (_: s: s.hosts) ((import ../../default.nix).mkCluster (base // {
			hosts = base.hosts // listToAttrs (genList host n);
			services = listToAttrs (genList (i: { name = "s${toString i}"; value = { replicas = 3; port = 1000 + i; placement = { inherit strategy; tags = [ ]; }; }; }) 40);
		})).topology.services;
		count = placed: h: length (filter (elem h) (builtins.attrValues placed));
		eight = run 8; nine = run 9;
	in `
	laws := map[string]string{
		"replicas are on as many hosts as wanted": `all (s: length s == 3) (builtins.attrValues (eight "minimize-movement"))`,
		"a new host takes only its share": `let a = eight "minimize-movement"; b = nine "minimize-movement"; in
			all (s: length (filter (h: !elem h a.${s}) b.${s}) <= 1 && all (h: elem h a.${s} || h == "h8") b.${s}) (attrNames a)`,
		"which is not nothing": `count (nine "minimize-movement") "h8" > 0`,
		"each gets what it asks for": `let
				hosts = mapAttrs (name: h: h // { tags = [ name ]; }) base.hosts;
				at = tag: { replicas = 1; port = 1; placement.tags = [ tag ]; };
				c = (import ../../default.nix).mkCluster (base // { inherit hosts; services = { a = at "alpha"; b = at "beta"; }; });
			in c.topology.services.a.hosts ++ c.topology.services.b.hosts == [ "alpha" "beta" ]`,
		"balanced loads differ by one": `let p = eight "balanced"; loads = map (count p) ([ "alpha" "beta" ] ++ genList (i: "h${toString i}") 8); in
			all (l: l == 12) loads`,
	}
	holds := evalEach[bool](t, prelude, "", slices.Collect(maps.Values(laws)))
	for law, expr := range laws {
		if !holds[expr] {
			t.Errorf("%s: it is not so", law)
		}
	}
}

// evalEach evaluates expressions after a prelude, each as the argument of a function, in one Nix
// process.
func evalEach[T any](t *testing.T, prelude, function string, expressions []string) map[string]T {
	t.Helper()
	var values []T
	nixEval(t, prelude+"[ ("+function+strings.Join(expressions, ") ("+function)+") ]", &values)
	all := map[string]T{}
	for i, e := range expressions {
		all[e] = values[i]
	}
	return all
}
