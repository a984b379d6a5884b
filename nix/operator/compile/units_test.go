package compile

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// various is a cluster whose hosts cover everything that units depend on. alpha issues certificates
// and has a member of the store. beta provides sign-in, has a listener that needs a privilege, and
// publishes its own API. gamma has nothing of this, nor has delta, which is in another cluster too.
const various = `{ one = mkCluster (base // {
  hosts = base.hosts // {
    gamma = { sshHostKey = key "gamma"; };
    delta = { sshHostKey = key "delta"; instance = "blue"; };
  };
  services.host = { host = "beta"; scope = "node"; upstream = "unix:/run/florete-host.sock"; listenPort = 80; };
  services.refetch = { host = "alpha"; scope = "node"; upstream = "unix:/run/florete-host-refetch.sock"; listenPort = 80; };
  services.wiki = { host = "beta"; port = 80; user = "wiki"; workloadApi = true; sso = { mode = "oidc"; restart = "wiki.service"; redirectURIs = [ "http://wiki.example.org/cb" ]; }; };
  providers = { cert.hosts = [ "alpha" ]; oidc = { hosts = [ "beta" ]; issuer = "http://sso.example.org"; }; store = { kind = "etcd"; hosts = [ "alpha" ]; }; };
}); }`

// joining is a cluster whose host epsilon joins with a token.
const joining = `{ one = mkCluster (base // {
  hosts = base.hosts // { epsilon = { }; };
  providers = { cert.hosts = [ "alpha" ]; config.hosts = [ "alpha" ]; };
}); }`

func readVarious(t *testing.T) map[string]Units {
	t.Helper()
	all := readUnits(t, various, "alpha", "beta", "gamma", "delta")
	all["epsilon"] = readUnits(t, joining, "epsilon")["epsilon"]
	return all
}

func readUnits(t *testing.T, cluster string, hosts ...string) map[string]Units {
	t.Helper()
	src := flake(t, "let key = name: \"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA\" + builtins.substring 8 42 ((import ./nix/lib/names.nix).sri name); in "+cluster)
	all := map[string]Units{}
	for _, host := range hosts {
		u, err := ReadUnits(t.Context(), src, host, "/opt/bin")
		if err != nil {
			t.Fatal(err)
		}
		all[host] = u
	}
	return all
}

// TestUnits checks the units of a host.
func TestUnits(t *testing.T) {
	all := readVarious(t)
	for _, c := range []struct{ host, unit, line string }{
		{"gamma", "florete-activate.service", `ExecStart=/opt/bin/flor activate --closure="/etc/florete/documents" --owner="florete" --state="/var/lib/florete"`},
		{"gamma", "florete-activate.service", "CapabilityBoundingSet=CAP_CHOWN CAP_DAC_READ_SEARCH"},
		{"gamma", "florete-agent.service", "CapabilityBoundingSet="},
		{"epsilon", "florete-activate.service", "BindPaths=-/dev/tpmrm0"},
		{"epsilon", "florete-activate.service", "CapabilityBoundingSet=CAP_CHOWN CAP_DAC_READ_SEARCH CAP_DAC_OVERRIDE"},
		{"epsilon", "florete-activate.service", "DeviceAllow=/dev/tpmrm0 rw"},
		{"gamma", "florete-agent.service", "User=florete"},
		{"beta", "florete-agent.service", "AmbientCapabilities=CAP_NET_BIND_SERVICE"},
		{"beta", "florete-agent.service", "CapabilityBoundingSet=CAP_NET_BIND_SERVICE"},
		{"alpha", "florete-provider-cert.service", "DynamicUser=true"},
		{"beta", "florete-provider-oidc.service", "DynamicUser=false"},
		{"beta", "florete-host.socket", "ListenStream=/run/florete-host.sock"},
		{"beta", "florete-host.service", `ExecStart=/opt/bin/flor host run --state="/var/lib/florete"`},
		{"beta", "florete-need-oidc-wiki.path", "PathExists=/var/lib/florete/needs/oidc-wiki/current"},
		{"beta", "florete-host.socket", "SocketUser=florete"},
		{"beta", "florete-host.service", "Sockets=florete-host.socket"},
		{"alpha", "florete-host-refetch.socket", "ListenStream=/run/florete-host-refetch.sock"},
		{"alpha", "florete-host-refetch.socket", "Service=florete-host.service"},
		{"beta", "florete-credentials.socket", "SocketMode=0600"},
		{"beta", "florete-workload.socket", "ListenStream=/run/florete/workload.sock"},
		{"beta", "florete-workload.service", "User=florete"},
		{"alpha", "florete-store.service", "LoadCredential=member.key:/etc/florete/store/member.key"},
		{"alpha", "florete-store.service", "Environment=ETCD_INITIAL_CLUSTER=alpha=https://192.0.2.1:4621"},
		{"alpha", "florete-store-certificates.path", "PathChanged=/etc/florete/store"},
		{"beta", "florete-store-certificates.service", `ExecStart=/opt/bin/flor store-certificates --state="/var/lib/florete"`},
		{"alpha", "florete-store.service", "EnvironmentFile=-/run/florete-store.env"},
		{"beta", "florete-provider-oidc.service", `ExecStartPre=+/opt/bin/flor-provider unseal oidc --settings="/etc/florete/provider.hujson"`},
		{"beta", "florete-provider-oidc.service", "LoadCredential=store-client.key:/etc/florete/store/client.key"},
		{"gamma", "florete-hosts-file.service", `ExecStart=/opt/bin/flor hosts-file --state="/var/lib/florete"`},
		{"delta", "florete_blue-agent.service", "User=florete_blue"},
		{"delta", "florete_blue-need-cert-node.path", "PathExists=/var/lib/florete_blue/needs/cert-node/current"},
	} {
		if !slices.Contains(strings.Split(all[c.host].Files[c.unit], "\n"), c.line) {
			t.Errorf("%s: %s does not say %q:\n%s", c.host, c.unit, c.line, all[c.host].Files[c.unit])
		}
	}
	for host, u := range all {
		for name, text := range u.Files {
			if strings.HasSuffix(name, ".service") && !strings.Contains(text, "\nLimitCORE=0\n") {
				t.Errorf("%s: %s may leave a core, which would have keys", host, name)
			}
		}
	}
	for _, line := range []string{"-net.core.rmem_max = 7500000\n", "-fs.inotify.max_user_instances = 524288\n"} {
		if got := all["gamma"].Sysctl; !strings.Contains(got, line) {
			t.Errorf("sysctl: no %q in\n%s", line, got)
		}
	}
	for host, line := range map[string]string{
		"alpha": "u florete - \"Florete's forwarder\" /var/lib/florete\n",
		"beta":  "u florete-provider-oidc - \"Florete's oidc provider\" /var/lib/florete-provider/oidc\n",
		"delta": "u florete_blue - \"Florete's forwarder\" /var/lib/florete_blue\n",
	} {
		if got := all[host].Sysusers; !strings.Contains(got, line) {
			t.Errorf("%s: sysusers: no %q in\n%s", host, line, got)
		}
	}
	if strings.Contains(all["gamma"].Files["florete-activate.service"], "tpm") {
		t.Error("gamma may use a TPM, and has an SSH host key")
	}
	if all["gamma"].Files["florete-provider-cert.service"] != "" {
		t.Error("gamma has a provider's unit and provides nothing")
	}
	for host, unit := range map[string]string{"gamma": "florete-host.service", "alpha": "florete-host.socket", "beta": "florete-host-refetch.socket"} {
		if all[host].Files[unit] != "" {
			t.Errorf("%s has %s, which nobody published", host, unit)
		}
	}
	if all["beta"].Files["florete-store.service"] != "" {
		t.Error("beta has a member of the store, which alpha keeps")
	}
	if all["gamma"].Files["florete-credentials.socket"] != "" {
		t.Error("gamma has a socket of credentials, and no service")
	}
	if all["gamma"].Files["florete-workload.socket"] != "" {
		t.Error("gamma has a Workload API, and no service that may use it")
	}
	if strings.Contains(all["alpha"].Sysusers, "florete-provider-cert") {
		t.Error("alpha has an account for a provider whose account systemd makes up")
	}
	documents := regexp.MustCompile("(?m)^X-Documents=.*$")
	if a, b := all["alpha"].Files["florete-activate.service"], all["beta"].Files["florete-activate.service"]; a == b ||
		documents.ReplaceAllString(a, "") != documents.ReplaceAllString(b, "") {
		t.Error("activation's units of two hosts differ in more than their documents, or not in those")
	}
}

// TestExposure asks systemd for the exposure of each service, and whether it knows every directive.
func TestExposure(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("NOT RUN: no systemd-analyze in PATH, on Debian it is in the package systemd")
	}
	for host, units := range readVarious(t) {
		dir := t.TempDir()
		if err := units.Write(dir); err != nil {
			t.Fatal(err)
		}
		for name := range units.Files {
			if filepath.Ext(name) != ".service" {
				continue
			}
			cmd := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=21", "--no-pager", "./"+name)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "Overall exposure level for "+name) {
				t.Errorf("%s: %s: exposed by more than 2.1: %v\n%s", host, name, err, out)
			}
			if strings.Contains(string(out), "Unknown") || strings.Contains(string(out), "ignoring") {
				t.Errorf("%s: %s:\n%s", host, name, out)
			}
		}
	}
}

// TestUnitsWrite writes units over those of an earlier call, beside files of others and units of
// another instance.
func TestUnitsWrite(t *testing.T) {
	dir := t.TempDir()
	blue := Units{Instance: "blue", Files: map[string]string{"florete_blue-agent.service": "blue"}}
	if err := blue.Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"florete-need-old.path", "florete-agent.service", "other.service"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "florete-agent.service.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	units := Units{Files: map[string]string{"florete-agent.service": "new"}, Sysusers: "u florete"}
	if err := units.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := blue.Write(dir); err != nil {
		t.Fatal(err)
	}
	var got []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	want := strings.Fields("florete-agent.service florete-agent.service.d florete.sysctl florete.sysusers florete_blue-agent.service florete_blue.sysctl florete_blue.sysusers other.service")
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, want := range map[string]string{"florete-agent.service": "new", "florete.sysusers": "u florete", "florete_blue-agent.service": "blue"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: got %q, %v", name, b, err)
		}
	}
}

// TestUnitsRecover checks that no number of crashes keeps a service down, that none takes the
// host's memory, and that a socket stops its service with it, without which it could not start
// again.
func TestUnitsRecover(t *testing.T) {
	for host, units := range readVarious(t) {
		for name, text := range units.Files {
			stem, kind, _ := strings.Cut(name, ".")
			if kind == "service" && !strings.Contains(text, "\nStartLimitIntervalSec=0\n") {
				t.Errorf("%s: %s: has a limit of starts", host, name)
			}
			if kind == "service" && !strings.Contains(text, "\nMemoryMax=") {
				t.Errorf("%s: %s: may take all memory", host, name)
			}
			if kind != "socket" {
				continue
			}
			service := stem + ".service"
			if _, named, found := strings.Cut(text, "\nService="); found {
				service, _, _ = strings.Cut(named, "\n")
			}
			if !strings.Contains(units.Files[service], "\nPartOf="+name+"\n") {
				t.Errorf("%s: %s: is not part of %s", host, service, name)
			}
		}
	}
}
