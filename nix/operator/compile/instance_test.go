package compile

import (
	"regexp"
	"strings"
	"testing"
)

// TestInstance checks that the units and accounts of a further instance are those of a host's only
// one under other names, also in commands. No name, path or account may be shared.
func TestInstance(t *testing.T) {
	others := strings.NewReplacer(
		"cert-service-florete-provider", "cert-service-florete-provider", // a need, called as the service
		"florete store member", "florete store member", // whatever the instances of the hosts
		"florete", "florete_blue",
	)
	ours := regexp.MustCompile("(?m)^Exec(Start|StartPre|Reload)=[+]?/opt/bin/")
	documents := regexp.MustCompile("(?m)^X-Documents=.*\n")
	only := unitsAs(t, "{ }", various)
	blue := unitsAs(t, `{ instance = "blue"; }`, strings.ReplaceAll(various, "/run/florete-", "/run/florete_blue-"))
	for host, units := range only {
		if len(blue[host]) != len(units) {
			t.Errorf("%s: %d units, want %d", host, len(blue[host]), len(units))
		}
		for name, text := range units {
			want, got := others.Replace(documents.ReplaceAllString(text, "")), documents.ReplaceAllString(blue[host][others.Replace(name)], "")
			if commands := len(ours.FindAllString(want, -1)); strings.Count(got, ` --instance="blue"`) != commands {
				t.Errorf("%s: %s does not tell its %d commands:\n%s", host, name, commands, got)
			}
			if got = strings.ReplaceAll(got, ` --instance="blue"`, ""); got != want {
				t.Errorf("%s: %s: got\n%s\nwant\n%s", host, name, got, want)
			}
			if strings.Contains(text, "instance") {
				t.Errorf("%s: %s speaks of instances:\n%s", host, name, text)
			}
		}
	}
}

// unitsAs returns all units of each host, and its accounts, if every host has this instance.
func unitsAs(t *testing.T, instance, output string) (all map[string]map[string]string) {
	t.Helper()
	src := flake(t, `let
		make = mkCluster;
		key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + builtins.substring 8 42 ((import ./nix/lib/names.nix).sri name);
	in let
		mkCluster = args: make (args // { hosts = builtins.mapAttrs (_: h: removeAttrs h [ "instance" ] // `+instance+`) args.hosts; });
	in `+output)
	err := eval(t.Context(), src, `clusters: let c = clusters.one; in
		builtins.mapAttrs (host: units: units // { sysusers = c.sysusers.${host}; }) (c.unitsIn "/opt/bin")`, &all)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
