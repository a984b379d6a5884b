package oidc

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/providertest"
	"github.com/florete/florete/providers/server"
)

func TestConformance(t *testing.T) {
	listen := providertest.Loopback()
	providertest.Run(t, providertest.Suite{
		Kind:     Name,
		Need:     "oidc-outline",
		Request:  api.OIDCBody{Issuer: issuerURL, Service: outline, RedirectURIs: []string{callback}},
		Settings: settings{issuerURL},
		Make: func(e *providertest.Env) server.Kind {
			users := filepath.Join(e.Dir, "users")
			if err := os.WriteFile(users, []byte(`[]`), 0o600); err != nil {
				t.Fatal(err)
			}
			// The faults are for what the server commits, not for keys of the issuer.
			return New(Config{
				Store: e.Store.Store, Key: e.Key, Policy: e.Policies.Current, Listen: listen, Users: users,
				Audit: server.NewAudit(e.Store.Store, slog.Default()),
			})
		},
		Secret: []string{"clientSecret"},
	})
}
