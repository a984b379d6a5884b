package kind

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/secret"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit/providertest"
)

const ofSecrets = `{
  outputs = _: {
    florete.demo = (import ./nix).mkCluster {
      serial = 1000;
      name = "demo";
      trustDomain = "demo.flor";
      trust.roots = [ ./root.crt ];
      hosts.drhorrible = { address = "192.0.2.1"; sshHostKey = "%s"; };
      hosts.ursula = { sshHostKey = "%s"; group = "eu/fra"; };
      hosts.raishan = { sshHostKey = "%s"; group = "eu"; tags = [ "backed-up" ]; };
      hostGroups.eu = { };
      hostGroups."eu/fra".tags = [ "backed-up" ];
      roles = { node = { }; operator.serviceGroups = [ ]; };
      serviceGroups = { control-plane = [ ]; control-plane-write = [ ]; };
      secrets.mesh = { generate = "hex"; readers = [ { group = "eu"; } ]; };
      secrets.backup = { generate = "password"; perHost = true; readers = [ { tags = [ "backed-up" ]; } ]; };
      providers = { cert.hosts = [ "drhorrible" ]; secret.hosts = [ "drhorrible" ]; };
    };
  };
}
`

// TestSecretsOfHosts checks that the hosts of a group get the same secret, and that each host with
// a tag gets a secret of its own, from the topology to the delivered files.
func TestSecretsOfHosts(t *testing.T) {
	issuing := providertest.NewEnv(t)
	making := issuing.Beside("drhorrible")
	keys := t.TempDir()
	cluster, err := compile.Compile(t.Context(), compile.Source{Flake: flake(t, issuing, keys, ofSecrets, "raishan")})
	must(t, err)
	making.Runs(secret.Name, struct{}{}, func(e *providertest.Env) server.AnyKind {
		// Without the socket for operators.
		return server.Any(struct{ server.Kind[*secret.Policy] }{secret.New(secret.Config{Store: e.Store, Key: e.Key})})
	})
	got := map[string]string{}
	for _, e := range []*providertest.Env{issuing, making} {
		e.Policy = cluster.Documents["drhorrible"][1].Policy()
		e.Start()
	}
	for _, host := range []string{"ursula", "raishan"} {
		_, state, summary := activate(t, cluster, host, keys, secret.Name, issuing, making)
		for _, name := range []string{"mesh", "backup"} {
			b, err := os.ReadFile(filepath.Join(hostdir.Current(state.Need("secret-node-"+name)), name))
			if err != nil {
				t.Fatalf("%s: %v; %+v", host, err, summary)
			}
			got[host+" "+name] = string(b)
		}
	}
	if got["ursula mesh"] != got["raishan mesh"] || len(got["ursula mesh"]) != 64 {
		t.Error("the hosts of the group have different secrets")
	}
	if got["ursula backup"] == got["raishan backup"] || len(got["ursula backup"]) != 32 {
		t.Error("two hosts have the same secret, want one for each")
	}
}
