package compile

import (
	"maps"
	"slices"
	"testing"
)

// TestRuns checks that a host has the services that the topology puts there, by name or by
// placement, and the units named for each.
func TestRuns(t *testing.T) {
	src := flake(t, `let key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + builtins.substring 8 42 ((import ./nix/lib/names.nix).sri name); in
	{ one = mkCluster (base // {
	  hosts = {
	    alpha = base.hosts.alpha // { weight = 5; group = "eu"; };
	    beta = base.hosts.beta // { group = "us"; };
	    gamma = { sshHostKey = key "gamma"; address = "192.0.2.3"; group = "us"; callers."service/standby" = [ "standby.service" "pg" ]; };
	  };
	  hostGroups = { eu = { }; us = { }; };
	  services = {
	    db = { replicas = 2; port = 5432; placement = { spread = "one-per-group"; pins = [ "beta" ]; }; };
	    standby = { replicas = 1; upstream = "unix:/run/standby"; listenPort = 1; user = "standby"; placement.apart = [ "db" ];
	      files.key = { ref = "standby/key"; restart = "standby-key.service"; }; };
	    cron = { host = "beta"; port = 9000; scope = "node"; visibility = "host"; };
	  };
	  roles = { node = { }; operator = { }; };
	  users.ann = { };
	  serviceGroups = { control-plane = [ ]; control-plane-write = [ ]; };
	  providers = { cert.hosts = [ "alpha" ]; file.hosts = [ "alpha" ]; };
	}); }`)
	top, err := ReadTopology(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"alpha": {"db"}, "beta": {"cron", "db"}, "gamma": {"standby"}}
	for host, services := range want {
		u, err := ReadUnits(t.Context(), src, host, "/opt/bin")
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(u.Runs)); !slices.Equal(got, services) || !slices.Equal(top.Hosts[host].Services, services) {
			t.Errorf("%s: runs %v, in the topology %v, want %v", host, got, top.Hosts[host].Services, services)
		}
		if !slices.Contains(u.Enabled(), "florete-activate.service") || slices.Contains(u.Enabled(), "florete-rollback.service") {
			t.Errorf("%s: enables %v", host, u.Enabled())
		}
		if s, ok := u.Runs["standby"]; ok && (s.Upstream != "unix:/run/standby" || s.User != "standby" || s.Protocol != "tcp" ||
			!slices.Equal(s.Units, []string{"standby-key.service", "standby.service"})) {
			t.Errorf("standby: %+v", s)
		}
		if s := u.Runs["db"]; host == "alpha" && (s.Upstream != "127.0.0.1:5432" || len(s.Units) > 0) {
			t.Errorf("db: %+v", s)
		}
	}
}

// TestRunsPorts checks that a service with several ports listens on each of them.
func TestRunsPorts(t *testing.T) {
	src := flake(t, `{ one = mkCluster (base // { services = base.services // {
		several = { host = "beta"; visibility = "host"; ports = { http = 8099; dns = { port = 53; protocol = [ "tcp" "udp" ]; }; }; };
	}; }); }`)
	u, err := ReadUnits(t.Context(), src, "beta", "/opt/bin")
	if err != nil {
		t.Fatal(err)
	}
	ports := u.Runs["several"].Ports
	if dns := ports["dns"]; len(ports) != 2 || ports["http"].Upstream != "127.0.0.1:8099" || dns.Upstream != "127.0.0.1:53" || !slices.Equal(dns.Protocols, []string{"tcp", "udp"}) {
		t.Errorf("got %+v", ports)
	}
}
