// Package controltest puts the processes of other kinds beside one of kind config: those that
// answer operators through its API.
package controltest

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/file"
	"github.com/florete/florete/providers/providertest"
	"github.com/florete/florete/providers/relay"
	"github.com/florete/florete/providers/secret"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/tls"
	"github.com/florete/florete/tests/kit"
)

// What node ursula is granted of them.
var (
	File = file.Request{Ref: "wiki/smtp"}
	Mesh = secret.Request{Secret: "mesh", Generate: "wireguard"}
)

// web has one domain outside DNS.
var web = map[string]any{"directory": "https://acme.example/directory", "contact": "", "dns": "", "internal": []string{"internal"}}

// Others starts the processes of the kinds file, secret and tls on the host of e, which has not
// started yet: each with a state of its own, and a socket in run, for an account. They are by
// kind.
func Others(t *testing.T, e *providertest.Env, run, account string, log *slog.Logger) map[string]*providertest.Env {
	t.Helper()
	all := map[string]*providertest.Env{}
	e.Provide(file.Name, struct{}{})
	e.Provide(secret.Name, struct{}{})
	e.Provide(tls.Name, web)
	for name, settings := range map[string]func(socket string) server.Section{
		file.Name: func(socket string) server.Section {
			return &file.Settings{Dir: t.TempDir(), Control: socket, Config: account}
		},
		secret.Name: func(socket string) server.Section { return &secret.Settings{Control: socket, Config: account} },
		tls.Name:    func(socket string) server.Section { return &tls.Settings{Control: socket, Config: account} },
	} {
		dir := filepath.Join(run, florete.Instance("").Unit("provider-"+name))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		socket := filepath.Join(dir, relay.Socket)
		b := e.Beside(e.Policy.Host)
		b.Logger = log
		ursula := kit.ID("node/ursula")
		b.Grant(ursula, "file-wiki-smtp", file.Name, File)
		b.Grant(ursula, "secret-node-mesh", secret.Name, Mesh)
		policy := any(struct{}{})
		if name == tls.Name {
			policy = web
		}
		b.Runs(name, policy, func(p *providertest.Env) server.Kind {
			return settings(socket).Kind(server.Process{Store: p.Store, Key: p.Key, Policies: p.Policies, Audit: server.NewAudit(p.Store, log), Logger: log})
		})
		b.Start()
		all[name] = b
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(socket); err == nil {
				break
			} else if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	}
	return all
}
