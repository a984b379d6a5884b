// Package controltest starts provider processes of other kinds beside a process of kind config.
// Tests use it to check that operators reach these processes through the API of kind config.
package controltest

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/file"
	"github.com/florete/florete/providers/secret"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/tls"
	"github.com/florete/florete/providers/token"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// These are grants of each kind to the node ursula.
var (
	File = file.Request{Ref: "wiki/smtp"}
	Mesh = secret.Request{Secret: "mesh", Generate: "wireguard"}
)

// web contains the settings of kind tls with one domain outside DNS.
var web = map[string]any{"directory": "https://acme.example/directory", "contact": "", "dns": "", "internal": []string{"internal"}}

// tenants contains the settings of kind token with one tenant. The user alice changes the rules of
// this tenant at run time.
var tenants = map[string]any{"issuer": "http://tokens.demo.flor.rete", "generation": 1, "tenants": map[string]any{"acme": map[string]any{
	"namespaces": []string{"payments"}, "issuers": map[string]any{}, "groupings": []any{}, "lifetime": 900, "tokensPerMinute": 60,
	"runtimeRules": token.Quota{Policies: 10, Groupings: 10},
	"policies": []map[string]string{
		{"subject": kit.ID("user/alice").String(), "action": "rbac.view", "object": "tenant:acme"},
		{"subject": kit.ID("user/alice").String(), "action": "rbac.policy.manage", "object": "tenant:acme"},
		{"subject": kit.ID("user/alice").String(), "action": "rbac.assignment.manage", "object": "tenant:acme"},
	},
}}}

// Others starts provider processes of the kinds file, secret, tls and token on the host of the
// environment e, and returns them by kind. Each has its own state, and its own socket in the
// directory run, to which the given account may connect. Call Others before the process of e
// starts.
func Others(t *testing.T, e *providertest.Env, run, account string, log *slog.Logger) map[string]*providertest.Env {
	t.Helper()
	all := map[string]*providertest.Env{}
	e.Provide(file.Name, struct{}{})
	e.Provide(secret.Name, struct{}{})
	e.Provide(tls.Name, web)
	e.Provide(token.Name, tenants)
	for name, settings := range map[string]func(socket string) server.Section{
		file.Name: func(socket string) server.Section {
			return &file.Settings{Dir: t.TempDir(), Control: socket, Config: account}
		},
		secret.Name: func(socket string) server.Section { return &secret.Settings{Control: socket, Config: account} },
		tls.Name:    func(socket string) server.Section { return &tls.Settings{Control: socket, Config: account} },
		token.Name: func(socket string) server.Section {
			return &token.Settings{Control: socket, Config: account, Listen: filepath.Join(filepath.Dir(socket), token.Socket), Forwarder: account}
		},
	} {
		dir := filepath.Join(run, hostdir.Instance("").Unit("provider-"+name))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		socket := filepath.Join(dir, announced.OperatorSocket)
		b := e.Beside(e.Policy.Host)
		b.Logger = log
		ursula := kit.ID("node/ursula")
		b.Grant(ursula, "file-wiki-smtp", file.Name, File)
		b.Grant(ursula, "secret-node-mesh", secret.Name, Mesh)
		policy := any(struct{}{})
		switch name {
		case tls.Name:
			policy = web
		case token.Name:
			policy = tenants
		}
		b.Runs(name, policy, func(p *providertest.Env) server.AnyKind {
			return settings(socket).Kind(server.Process{Store: p.Store, Key: p.Key, Policies: p.Policies, Audit: server.NewAudit(p.Store, log), Logger: log})
		})
		b.Start()
		all[name] = b
		kit.Succeeds(t, socket, func() error { _, err := os.Stat(socket); return err })
	}
	return all
}
