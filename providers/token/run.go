package token

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/florete/florete/providers/announced"
)

const (
	connections = 256

	// Those of the public come through one ingress.
	connsOfCaller = 128

	patience = 30 * time.Second // of one request
	upkeep   = time.Minute      // how soon a key that is due is made
)

// maxAge is the value of the Cache-Control header of the tenants' pages.
const maxAge = "public, max-age=300"

// Run serves callers that exchange tokens and operators that change rules, and creates new signing
// keys, until ctx ends. The requests of callers arrive through the forwarder, and those of
// operators through the process of kind "config".
func (t *Tokens) Run(ctx context.Context, ready func()) error {
	ready() // hosts wait for nothing of that
	var owned sync.WaitGroup
	defer owned.Wait()
	owned.Go(func() { t.upkeep(ctx) })
	owned.Go(func() { t.operate(ctx) })
	if t.Bootstrap != "" {
		owned.Go(func() {
			if err := t.serveBootstrap(ctx); err != nil {
				t.Logger.Error("the bootstrap socket is not served", "setting", "token.bootstrap", "error", err)
			}
		})
	}
	announced.Run(ctx, announced.Config{
		Socket: t.Listen, Forwarder: t.Forwarder, Service: "of tokens", Kind: Name,
		Conns: connections, ConnsOfCaller: connsOfCaller, Audit: t.Audit, Logger: t.Logger,
		Wanted:  func() bool { return t.Policy() != nil },
		Handler: t.handler(),
	})
	return nil
}

// upkeep makes signing keys that are due, including those of new tenants, and deletes the state of
// tenants that the policy dropped. It returns when ctx ends.
func (t *Tokens) upkeep(ctx context.Context) {
	tick := time.NewTicker(upkeep)
	defer tick.Stop()
	for {
		if p := t.Policy(); p != nil {
			for name, tenant := range p.tenants {
				if err := t.tenants.keys(tenant).Keep(ctx, time.Now(), p.generation); err != nil && ctx.Err() == nil {
					t.Logger.Error("the signing keys stay as they are until the next try", "tenant", name, "error", err)
				}
			}
			if err := t.sweep(ctx, time.Now(), p); err != nil && ctx.Err() == nil {
				t.Logger.Error("the state of tenants that the policy dropped is kept until the next try", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (t *Tokens) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+path("{tenant}")+"/token/exchange", t.exchange)
	mux.HandleFunc("GET "+path("{tenant}")+"/jwks.json", t.page(t.jwks))
	mux.HandleFunc("GET "+path("{tenant}")+"/.well-known/openid-configuration", t.page(func(_ context.Context, _ *Policy, tenant *Tenant) (any, error) {
		return discovery(tenant.issuer), nil
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deadline := time.Now().Add(patience)
		_ = http.NewResponseController(w).SetReadDeadline(deadline)
		_ = http.NewResponseController(w).SetWriteDeadline(deadline)
		// Another name may lead here, as in DNS rebinding.
		if p := t.Policy(); p == nil || !announced.AtIssuer(p.issuer, r.Host) {
			respond(w, http.StatusMisdirectedRequest, "no-store", Refused{"invalid_request", "no issuer of tokens has this name: want that of providers.token.issuer"})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// page returns a handler that serves a document of a tenant.
func (t *Tokens) page(of func(context.Context, *Policy, *Tenant) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := t.Policy()
		if p == nil || p.tenants[r.PathValue("tenant")] == nil {
			http.Error(w, "no such tenant", http.StatusNotFound)
			return
		}
		v, err := of(r.Context(), p, p.tenants[r.PathValue("tenant")])
		if err != nil {
			t.Logger.Error("cannot serve a page", "path", r.URL.Path, "error", err)
			http.Error(w, "the provider failed: its log has the reason", http.StatusServiceUnavailable)
			return
		}
		if b, ok := v.([]byte); ok {
			write(w, http.StatusOK, maxAge, b)
			return
		}
		respond(w, http.StatusOK, maxAge, v)
	}
}

func (t *Tokens) jwks(ctx context.Context, p *Policy, tenant *Tenant) (any, error) {
	ring, err := t.tenants.keys(tenant).Published(ctx, time.Now(), p.generation)
	return ring.JWKS(), err
}

// discovery returns the document in which OpenID Connect verifiers find the keys of an issuer. It
// names no endpoints for signing in.
func discovery(issuer string) map[string]any {
	return map[string]any{
		"issuer":                                issuer,
		"jwks_uri":                              issuer + "/jwks.json",
		"token_endpoint":                        issuer + "/token/exchange",
		"grant_types_supported":                 []string{GrantType},
		"response_types_supported":              []string{"none"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"EdDSA"},
		"claims_supported":                      []string{"iss", "sub", "aud", "iat", "exp", "jti", "permissions"},
	}
}
