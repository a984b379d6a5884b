package oidc

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"time"

	"florete/providers/oidc/dexstore"

	dex "github.com/dexidp/dex/server"
	"github.com/dexidp/dex/server/signer"
	"github.com/dexidp/dex/storage"
)

const (
	tokensLive   = time.Hour        // ID and access tokens
	loginsLive   = 15 * time.Minute // from the service's redirect to the password
	upkeepEvery  = 5 * time.Minute
	keysRotate   = "24h"
	refreshIdle  = "720h"  // a refresh token unused for so long ends
	refreshEnds  = "2160h" // and so does one of this age
	refreshAgain = "3s"    // an answer that got lost can be asked for again
)

//go:embed web
var web embed.FS

// pages are the paths of Dex that are served. Its device flow and introspection
// are not: they answer, and write to the store, without knowing the caller.
var pages = []string{
	"GET /.well-known/openid-configuration",
	"GET /keys",
	"POST /token",
	"GET /userinfo",
	"POST /userinfo",
	"GET /auth",
	"POST /auth",
	"GET /auth/{connector}",
	"GET /auth/{connector}/login",
	"POST /auth/{connector}/login",
	"GET /approval",
	"POST /approval",
	"GET /static/",
	"GET /robots.txt",
}

// issuerServer is one Dex.
type issuerServer struct {
	http.Handler
	storage storage.Storage
	signer  signer.Signer
	log     *slog.Logger
}

// newIssuer makes the Dex of an issuer. What Dex leaves running ends with ctx and
// touches nothing: rotation and garbage collection are upkeep's.
func (p *Provider) newIssuer(ctx context.Context, issuer string) (*issuerServer, error) {
	s := &issuerServer{log: p.log.With("issuer", issuer)}
	s.storage = directory{pending{dexstore.New(p.cfg.Store, p.cfg.Key), &p.pending}, p.clients, p.cfg.Policy}
	s.storage = storage.WithStaticPasswords(s.storage, p.users, s.log)
	s.storage = storage.WithStaticConnectors(s.storage, []storage.Connector{
		{ID: dex.LocalConnector, Name: "email and password", Type: dex.LocalConnector},
	})
	var err error
	s.signer, err = (&signer.LocalConfig{KeysRotationPeriod: keysRotate}).Open(ctx, s.storage, tokensLive, time.Now, s.log)
	if err != nil {
		return nil, err
	}
	s.rotate() // before Dex asks which algorithm to announce
	if _, err := s.signer.Algorithm(ctx); err != nil {
		return nil, fmt.Errorf("issuer %s: %w", issuer, err)
	}
	// The second argument turns rotation off, whatever its name says. The logger
	// would only repeat the constants.
	refresh, err := dex.NewRefreshTokenPolicy(slog.New(slog.DiscardHandler), false, refreshIdle, refreshEnds, refreshAgain)
	if err != nil {
		return nil, err
	}
	assets, err := fs.Sub(web, "web")
	if err != nil {
		return nil, err
	}
	d, err := dex.NewServer(ctx, dex.Config{
		Issuer:               issuer,
		Storage:              s.storage,
		AllowedGrantTypes:    []string{"authorization_code", "refresh_token"},
		SkipApprovalScreen:   true,
		IDTokensValidFor:     tokensLive,
		AuthRequestsValidFor: loginsLive,
		RefreshTokenPolicy:   refresh,
		GCFrequency:          math.MaxInt64,
		Web:                  dex.WebConfig{WebFS: assets, Issuer: p.cfg.Policy().Cluster},
		Logger:               s.log,
		Signer:               manual{s.signer},
	})
	if err != nil {
		return nil, fmt.Errorf("issuer %s: %w", issuer, err)
	}
	s.Handler = routes(d, assets)
	return s, nil
}

// routes serves the pages of Dex and nothing else of it.
func routes(dex http.Handler, assets fs.FS) http.Handler {
	mux := http.NewServeMux()
	for _, page := range pages {
		mux.Handle(page, dex)
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, assets, "static/welcome.html")
	})
	return http.MaxBytesHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		// No form-action: browsers apply it to where signing in leads back to.
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		mux.ServeHTTP(w, r)
	}), 64<<10)
}

// manual is a signer whose keys somebody else rotates.
type manual struct{ signer.Signer }

func (manual) Start(context.Context) {}

// rotate makes new signing keys when they are due. Start does so before it
// returns, and what it leaves running ends at once.
func (s *issuerServer) rotate() {
	ended, end := context.WithCancel(context.Background())
	end()
	s.signer.Start(ended)
}

// upkeep rotates keys and collects garbage until ctx ends.
func (s *issuerServer) upkeep(ctx context.Context) {
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.rotate()
			if _, err := s.storage.GarbageCollect(ctx, time.Now()); err != nil {
				s.log.Error("expired logins stay until the next try", "error", err)
			}
		}
	}
}
