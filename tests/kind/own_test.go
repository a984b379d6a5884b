package kind

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/florete/florete/agent/credentials"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/own"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit/providertest"
)

// ofOwn is a topology around the example of the page.
const ofOwn = `{
  outputs = _: {
    florete.demo = (import ./nix).mkCluster {
      serial = 1000;
      name = "demo";
      trustDomain = "demo.flor";
      trust.roots = [ ./root.crt ];
      hosts.drhorrible = { address = "192.0.2.1"; sshHostKey = "%s"; };
      hosts.ursula.sshHostKey = "%s";
      services.wiki.host = "ursula";
      services.wiki.port = 80;
      services.wiki.visibility = "host";
      roles = { node = { }; operator.serviceGroups = [ ]; };
      serviceGroups = { control-plane = [ ]; control-plane-write = [ ]; };
      providers.cert.hosts = [ "drhorrible" ];
      PAGE
    };
  };
}
`

// block returns the first code block of the page in a language, without its indentation.
func block(t *testing.T, page, language string) string {
	t.Helper()
	m := regexp.MustCompile("(?sm)^( *)```" + language + "\n(.*?)^ *```").FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no %s in the page", language)
	}
	return regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[2], "")
}

// TestOwn runs the example of docs/how-to/issue-your-own-kind.md, from the topology to the
// delivered files.
func TestOwn(t *testing.T) {
	b, err := os.ReadFile("../../docs/how-to/issue-your-own-kind.md")
	must(t, err)
	page := string(b)
	public := filepath.Join(t.TempDir(), "public") // of whichever account runs it
	must(t, os.Mkdir(public, 0o755))
	must(t, os.Chmod(filepath.Dir(filepath.Dir(public)), 0o755))
	script := filepath.Join(public, "mailbox")
	must(t, os.WriteFile(script, []byte(block(t, page, "python")), 0o755))

	shown := strings.NewReplacer("forge", "drhorrible", "/usr/local/lib/florete/mailbox", script).Replace(block(t, page, "nix"))
	topology := strings.Replace(ofOwn, "PAGE", shown, 1)

	issuing := providertest.NewEnv(t)
	mail := issuing.Beside("drhorrible")
	mail.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	keys := t.TempDir()
	cluster, err := compile.Compile(t.Context(), compile.Source{Flake: flake(t, issuing, keys, topology)})
	must(t, err)
	work := filepath.Join(public, "mailbox-state")
	must(t, os.Mkdir(work, 0o755))
	mail.Runs("mailbox", nil, func(e *providertest.Env) server.AnyKind {
		return own.Section("mailbox").Kind(server.Process{Dir: work, Store: e.Store, Key: e.Key, Policies: e.Policies, Logger: e.Logger})
	})
	manifest, state, summary := activated(t, cluster, keys, "mailbox", issuing, mail)
	delivered := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(hostdir.Current(state.Need("mailbox-wiki-mail")), name))
		if err != nil {
			t.Fatalf("%v; %+v", err, summary)
		}
		return string(b)
	}
	passwd, err := os.ReadFile(filepath.Join(work, "work/passwd"))
	must(t, err)
	want := "wiki@example.org:{PLAIN}" + delivered("password") + "::::::userdb_quota_rule=*:storage=100M\n"
	if string(passwd) != want || delivered("server") != "mail.example.org" {
		t.Errorf("the mail server has %q, the host %q", passwd, want)
	}
	if _, err := credentials.Find(manifest, "wiki.service", "mailbox_password"); err != nil {
		t.Errorf("the service that it is for may not load it: %v", err)
	}
}
