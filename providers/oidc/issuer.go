package oidc

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"time"

	dex "github.com/dexidp/dex/server"
	"github.com/dexidp/dex/server/signer"
	"github.com/dexidp/dex/storage"

	"github.com/florete/florete/providers/oidc/dexstore"
	"github.com/florete/florete/providers/server"
)

const (
	tokensLive   = time.Hour        // ID and access tokens
	loginsLive   = 15 * time.Minute // from the service's redirect to the password
	upkeepEvery  = 5 * time.Minute
	keysRotate   = "24h"
	refreshIdle  = 720 * time.Hour  // a refresh token unused for so long ends
	refreshEnds  = 2160 * time.Hour // and so does one of this age
	refreshAgain = 3 * time.Second  // an answer that got lost can be requested again
)

//go:embed web
var web embed.FS

// issuerServer is a Dex server, with the handlers that process requests before Dex.
type issuerServer struct {
	http.Handler
	issuer  *url.URL
	dex     http.Handler
	storage storage.Storage
	records *dexstore.Store // below storage
	signIns signIns
	clients clients
	tokens  tokens
	guard   *guard
	account func(email string) bool     // whether it is somebody's
	users   map[string]storage.Password // by permanent ID
	policy  func() *Policy
	signer  signer.Signer
	audit   *server.Audit
	pages   *template.Template
	log     *slog.Logger
}

// newIssuer returns a new Dex server for an issuer. The goroutines that Dex starts end with ctx and
// change nothing, because upkeep rotates keys and collects garbage.
func (p *Provider) newIssuer(ctx context.Context, policy *Policy, users []storage.Password) (*issuerServer, error) {
	issuer, cluster := policy.issuer, policy.cluster
	u, err := url.Parse(issuer)
	if err != nil {
		return nil, err
	}
	log := slog.New(&sparing{Handler: p.log.Handler(), said: &said{}}).With("issuer", issuer)
	people := accounts{users: users, secret: p.cfg.Key.Derive("florete oidc unknown accounts v1", 32)}
	s := &issuerServer{issuer: u, guard: newGuard(), clients: p.clients, audit: p.cfg.Audit, log: log, policy: p.cfg.Policy, users: byID(users),
		account: func(email string) bool { _, ok := people.find(email); return ok }}
	s.records = dexstore.New(p.cfg.Store, p.cfg.Key)
	s.tokens = tokens{s.records, p.cfg.Store, p.cfg.Key}
	s.signIns = signIns{s.tokens, cookies{p.cfg.Key, u.Scheme == "https"}}
	people.Storage = directory{s.signIns, p.clients, p.cfg.Policy, p.cfg.Revoked}
	connectors, err := forDex(p.cfg.Users, policy.connectors)
	if err != nil {
		return nil, err
	}
	s.storage = storage.WithStaticConnectors(allowed{audited{people, p.cfg.Audit}, p.cfg.Policy, s.tokens}, connectors)
	s.signer, err = (&signer.LocalConfig{KeysRotationPeriod: keysRotate}).Open(ctx, s.storage, tokensLive, time.Now, s.log)
	if err != nil {
		return nil, err
	}
	s.rotate() // before Dex asks which algorithm to announce
	algorithm, err := s.signer.Algorithm(ctx)
	if err != nil {
		return nil, fmt.Errorf("issuer %s: %w", issuer, err)
	}
	// The second argument turns rotation off, whatever its name says. The logger
	// would only repeat the constants.
	refresh, err := dex.NewRefreshTokenPolicy(slog.New(slog.DiscardHandler), false, refreshIdle.String(), refreshEnds.String(), refreshAgain.String())
	if err != nil {
		return nil, err
	}
	assets, err := fs.Sub(web, "web")
	if err != nil {
		return nil, err
	}
	s.pages, err = template.New("").Funcs(template.FuncMap{"issuer": func() string { return cluster }}).ParseFS(assets, "templates/*")
	if err != nil {
		return nil, err
	}
	s.dex, err = dex.NewServer(ctx, dex.Config{
		Issuer:               issuer,
		Storage:              s.storage,
		AllowedGrantTypes:    []string{"authorization_code", "refresh_token"},
		SkipApprovalScreen:   true,
		IDTokensValidFor:     tokensLive,
		AuthRequestsValidFor: loginsLive,
		RefreshTokenPolicy:   refresh,
		GCFrequency:          math.MaxInt64,
		Web:                  dex.WebConfig{WebFS: assets, Issuer: cluster},
		Logger:               s.log,
		Signer:               manual{claiming{s.signer, p.cfg.Policy}},
	})
	if err != nil {
		return nil, fmt.Errorf("issuer %s: %w", issuer, err)
	}
	s.Handler = s.routes(assets, discovery(issuer, string(algorithm)))
	return s, nil
}

// manual is a signer whose keys Dex does not rotate.
type manual struct{ signer.Signer }

func (manual) Start(context.Context) {}

// rotate makes new signing keys if this is due. Dex's Start makes them before it returns, and the
// goroutine that Start begins ends at once.
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
			now := time.Now()
			_, err := s.storage.GarbageCollect(ctx, now)
			if err = errors.Join(err, s.records.ExpireRefresh(ctx, now.Add(-refreshIdle), now.Add(-refreshEnds))); err != nil {
				s.log.Error("expired logins stay until the next try", "error", err)
			}
		}
	}
}
