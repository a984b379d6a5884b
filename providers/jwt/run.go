package jwt

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/florete/florete/internal/httpreply"
	"github.com/florete/florete/providers/announced"
)

const (
	reread = time.Second // how soon a new policy is noticed
	upkeep = time.Minute // how soon a key that is due is made
)

// maxAge is the value of the Cache-Control header of the issuer's pages.
const maxAge = "public, max-age=300"

// Run serves the issuer's web pages and creates new signing keys when they are due, until ctx ends.
// It calls ready once the pages are served.
func (i *Issuer) Run(ctx context.Context, ready func()) error {
	ctx, stop := context.WithCancel(ctx)
	var owned sync.WaitGroup
	defer owned.Wait()
	defer stop()
	i.keepKeys(ctx)
	owned.Go(func() { i.upkeep(ctx) })
	i.Logger.Info("issuer of JWT-SVIDs serves", "listen", i.Listen)
	return announced.ServePages(ctx, announced.Pages{
		Name: Name, Listen: i.Listen, Secret: "keys would be read from whoever answers", Handler: i.pages(), Ready: ready, Logger: i.Logger,
	})
}

// upkeep maintains the signing keys until ctx ends. If the generation in the policy changes, it
// acts at once.
func (i *Issuer) upkeep(ctx context.Context) {
	tick := time.NewTicker(reread)
	defer tick.Stop()
	last, kept := time.Now(), i.generation()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if g := i.generation(); g != kept || now.Sub(last) >= upkeep {
				i.keepKeys(ctx)
				last, kept = now, g
			}
		}
	}
}

// generation returns the generation of the signing keys in the policy. It returns zero while the
// policy does not include this kind.
func (i *Issuer) generation() int {
	if p := i.Policy(); p != nil {
		return p.generation
	}
	return 0
}

func (i *Issuer) keepKeys(ctx context.Context) {
	g := i.generation()
	if g == 0 {
		return
	}
	if err := i.keys.Keep(ctx, time.Now(), g); err != nil && ctx.Err() == nil {
		i.Logger.Error("the signing keys stay as they are until the next try", "error", err)
	}
}

// pages returns the handler of the pages from which verifiers read the issuer's public keys.
func (i *Issuer) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		if p := i.here(w, r); p != nil {
			respond(w, discovery(p.issuer.String()))
		}
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, r *http.Request) {
		p := i.here(w, r)
		if p == nil {
			return
		}
		ring, err := i.keys.Published(r.Context(), time.Now(), p.generation)
		if err != nil {
			i.Logger.Error("cannot serve the keys", "error", err)
			http.Error(w, "the provider failed: its log has the reason", http.StatusServiceUnavailable)
			return
		}
		respond(w, ring.JWKS())
	})
	return mux
}

// here returns the policy if the policy's issuer has the host name in the request. Otherwise it
// answers that there is no such page, and returns nil.
func (i *Issuer) here(w http.ResponseWriter, r *http.Request) *Policy {
	p := i.Policy()
	if p == nil || !announced.AtIssuer(p.issuer, r.Host) {
		http.Error(w, fmt.Sprintf("no issuer at %q", r.Host), http.StatusMisdirectedRequest)
		return nil
	}
	return p
}

func respond(w http.ResponseWriter, b []byte) {
	w.Header().Set("Cache-Control", maxAge)
	httpreply.Encoded(w, http.StatusOK, b)
}

// discovery returns the document at /.well-known/openid-configuration of an issuer. The document
// names no endpoints for signing in.
func discovery(issuer string) []byte {
	b, err := json.MarshalIndent(map[string]any{
		"issuer":                                issuer,
		"jwks_uri":                              issuer + "/keys",
		"response_types_supported":              []string{"id_token"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"ES256"},
		"claims_supported":                      []string{"iss", "sub", "aud", "iat", "exp"},
	}, "", "  ")
	if err != nil {
		panic(err) // strings
	}
	return b
}
