// Package kind tests that a kind of need can be added with one Nix file and one Go package, without
// changing anything else.
package kind

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/activation"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/agent/credentials"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/tests/kind/toy"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// kinds is the list of kinds, as in flor-provider.
var kinds = settings.Kinds{toy.Name: func() server.Section { return new(toy.Settings) }}

const topology = `{
  outputs = _: {
    florete.demo = (import ./nix).mkCluster {
      serial = 1000;
      name = "demo";
      trustDomain = "demo.flor";
      trust.roots = [ ./root.crt ];
      hosts.drhorrible = { address = "192.0.2.1"; sshHostKey = "%s"; };
      hosts.ursula.sshHostKey = "%s";
      services.outline = { host = "ursula"; port = 80; visibility = "host"; greet = "outline"; };
      users = { };
      roles = { node = { }; operator.serviceGroups = [ ]; };
      serviceGroups = { control-plane = [ ]; control-plane-write = [ ]; };
      providers = { cert.hosts = [ "drhorrible" ]; toy.hosts = [ "drhorrible" ]; };
    };
  };
}
`

// TestToy checks that the needs of a new kind are compiled, granted, requested, delivered, and
// loaded by the unit of their service.
func TestToy(t *testing.T) {
	issuing := providertest.NewEnv(t)
	greeting := issuing.Beside("drhorrible")
	keys := t.TempDir()
	dir := flake(t, issuing, keys, topology)
	cluster, err := compile.Compile(t.Context(), compile.Source{Flake: dir})
	must(t, err)

	path := filepath.Join(t.TempDir(), "provider.hujson")
	must(t, os.WriteFile(path, []byte(`{"state":"state","activation":"activation","toy":{"mark":"!"}}`), 0o600))
	s, err := settings.Load("", path, kinds, toy.Name)
	must(t, err)
	greeting.Runs(toy.Name, nil, func(e *providertest.Env) server.AnyKind {
		return s.Section.Kind(server.Process{Store: e.Store, Key: e.Key, Policies: e.Policies})
	})
	manifest, state, summary := activated(t, cluster, keys, toy.Name, issuing, greeting)
	got, err := os.ReadFile(filepath.Join(hostdir.Current(state.Need("toy-outline")), "greeting"))
	if err != nil || string(got) != "hello outline!" {
		t.Errorf("delivered %q, %v; %+v", got, err, summary)
	}
	if _, err := credentials.Find(manifest, "outline.service", "toy_greeting"); err != nil {
		t.Errorf("the service that it is for may not load it: %v", err)
	}
}

// TestWanted checks that the compiler reports faults of the new kind too.
func TestWanted(t *testing.T) {
	e := providertest.NewEnv(t)
	dir := flake(t, e, t.TempDir(), strings.Replace(topology, "toy.hosts = [ \"drhorrible\" ];", "", 1))
	_, err := compile.Compile(t.Context(), compile.Source{Flake: dir})
	if want := `services.outline.greet needs it: write providers.toy = { hosts = [ "…" ]; };`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want …%s", err, want)
	}
}

// activated starts providers of certificates and of a kind for a cluster, and activates ursula,
// whose key is in a directory.
func activated(t *testing.T, cluster compile.Cluster, keys, kind string, issuing, other *providertest.Env) (document.Manifest, hostdir.Layout, event.Summary) {
	t.Helper()
	for _, e := range []*providertest.Env{issuing, other} {
		e.Policy = cluster.Documents["drhorrible"][1].Policy()
		e.Start()
	}
	return activate(t, cluster, "ursula", keys, kind, issuing, other)
}

// activate activates a host whose key is in a directory, while providers run.
func activate(t *testing.T, cluster compile.Cluster, host, keys, kind string, issuing, other *providertest.Env) (document.Manifest, hostdir.Layout, event.Summary) {
	t.Helper()
	document := cluster.Documents[host][0]
	manifest := document.Manifest()
	closure := t.TempDir()
	must(t, document.Write(closure))
	state := hostdir.Layout(t.TempDir())
	summary, err := activation.Run(t.Context(), activation.Config{
		State: state, Closure: closure, HostKey: filepath.Join(keys, host), Once: true,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if slices.Contains(manifest.Providers["drhorrible"][kind].Addresses, address) {
				return other.Dial(ctx, network, address)
			}
			return issuing.Dial(ctx, network, address)
		},
	})
	must(t, err)
	return manifest, state, summary
}

// flake returns a cluster whose compiler has the toy in its list of kinds, and whose hosts' keys
// are in a directory. The hosts are drhorrible, ursula and more.
func flake(t *testing.T, e *providertest.Env, keys, topology string, more ...string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, kit.CopyLibrary(filepath.Join(dir, "nix"), "../../nix"))
	text, err := os.ReadFile("toy.nix")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "nix/kinds/toy.nix"), text, 0o644))
	list := filepath.Join(dir, "nix/kinds/default.nix")
	text, err = os.ReadFile(list)
	must(t, err)
	const last = "  oidc = import ./oidc.nix;\n"
	added := strings.Replace(string(text), last, last+"  toy = import ./toy.nix;\n", 1)
	must(t, os.WriteFile(list, []byte(added), 0o644))

	var public []any
	for _, name := range append([]string{"drhorrible", "ursula"}, more...) {
		public = append(public, kit.Authorized(kit.WriteHostKey(filepath.Join(keys, name))))
	}
	text = fmt.Appendf(nil, topology, public...)
	must(t, os.WriteFile(filepath.Join(dir, "flake.nix"), text, 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "root.crt"), []byte(e.RootPEM()), 0o644))
	return dir
}

func must(t *testing.T, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}
