package oidc

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// client is the client request that the policy grants to ursula.
var client = Request{Issuer: issuerURL, Service: outline, RedirectURIs: []string{callback}}

var settings = map[string]string{"issuer": issuerURL}

// making returns a function that creates the kind in the process of an environment.
func making(t *testing.T) func(e *providertest.Env) server.AnyKind {
	listen := providertest.Loopback()
	return func(e *providertest.Env) server.AnyKind {
		users := filepath.Join(e.Dir, "users")
		if err := os.WriteFile(users, []byte(`[]`), 0o600); err != nil {
			t.Fatal(err)
		}
		// The faults are for what the server commits, not for keys of the issuer.
		return server.Any(New(Config{
			Store: e.Store.Store, Key: e.Key, Policy: server.Compiled[Policy](e.Policies), Listen: listen, Users: users, Revoked: e.Policies.Revoked,
			Audit: server.NewAudit(e.Store.Store, slog.Default()),
		}))
	}
}

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Suite{
		Kind: Name, Need: "oidc-outline", Request: client, Settings: settings, Make: making(t),
		Secret:  []string{"clientSecret"},
		Rotates: "clientSecret",
	})
}

// TestRotationStaysWithTheClient checks that a service that moved to another host and back gets the
// secret of the last rotation, not the first secret of its host.
func TestRotationStaysWithTheClient(t *testing.T) {
	e := providertest.NewEnv(t, "ursula", "raishan")
	e.Runs(Name, settings, making(t))
	ursula, raishan := kit.ID("node/ursula"), kit.ID("node/raishan")
	runsOn := func(node spiffe.ID) {
		e.Policy.Grants = slices.DeleteFunc(e.Policy.Grants, func(g document.Grant) bool { return g.Kind == Name })
		e.Grant(node, "oidc-outline", Name, client)
		e.Publish(providertest.Serial)
		e.Restart()
	}
	request := func(node spiffe.ID, rotation int) string {
		t.Helper()
		r := hostapi.Request{Need: "oidc-outline", Serial: providertest.Serial, Generation: 1, Rotation: rotation, Body: kit.JSON(client)}
		a, err := e.Client(node).Do(t.Context(), hostapi.Path(Name), r)
		if err != nil {
			t.Fatal(err)
		}
		return a.Values["clientSecret"]
	}
	e.Start()
	runsOn(ursula)
	first := request(ursula, 0)
	runsOn(raishan)
	second := request(raishan, 1)
	runsOn(ursula)
	if got := request(ursula, 0); got != second || got == first {
		t.Error("the host has another secret than that of the last rotation")
	}
}
