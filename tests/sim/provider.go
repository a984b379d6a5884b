package sim

import (
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/config"
	"github.com/florete/florete/providers/oidc"
	"github.com/florete/florete/providers/seal"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
)

// Provider is a provider host that runs the kinds cert, config and oidc, on real
// state. Of oidc it runs the registration, not the issuer's pages.
type Provider struct {
	process
	dir     string
	issuing *ca.Authority
	key     *seal.Key

	mu   sync.Mutex
	skew time.Duration
}

func newProvider(f *Fleet, name string) *Provider {
	p := &Provider{dir: filepath.Join(f.dir, name)}
	p.process = process{f: f, name: name, run: p.serve, dead: func(*life) {}}
	f.must(os.Mkdir(p.dir, 0o700))
	f.must(os.WriteFile(p.path("users"), []byte("[]"), 0o600))
	var err error
	p.key, err = seal.Load(p.path("seal.key"))
	f.must(err)
	key, err := ca.NewKey()
	f.must(err)
	csr, err := ca.NewIssuingCSR(domain, key)
	f.must(err)
	c, err := f.root.SignIssuing(csr, ca.IssuingLifetime, f.root.Certificate.NotBefore.Add(ca.Skew))
	f.must(err)
	p.issuing = &ca.Authority{Certificate: c, Key: key}
	return p
}

func (p *Provider) path(name string) string { return filepath.Join(p.dir, name) }

func (p *Provider) self() florete.Provider {
	return florete.Provider{ID: id(florete.KindService, p.name, florete.ProviderService), Addresses: florete.Addresses{p.name + ":4600"}}
}

// Skew sets the clock by which the provider issues: certificates, its own too, and
// nonces. Its other decisions keep the fleet's clock.
func (p *Provider) Skew(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skew = d
	p.f.log("%s has its clock %s off", p.name, d)
}

func (p *Provider) ahead() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.skew
}

// serve is one life: what flor-provider does, on the fleet's network.
func (p *Provider) serve(ctx context.Context, l *life) {
	if err := p.server(ctx, l); err != nil && l.alive() {
		p.f.Errorf("%s ended: %v", p.name, err)
	}
}

func (p *Provider) server(ctx context.Context, l *life) error {
	log := slog.New(slog.NewTextHandler(writer(func(line string) { p.f.log("%s: %s", p.name, line) }), &slog.HandlerOptions{Level: slog.LevelError}))
	db, err := sqlite.Open(p.path("state.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	state := mortal{Store: db, provider: p, life: l}
	policies, err := server.OpenPolicies(p.path("policy"), log)
	if err != nil {
		return err
	}
	issuer := cert.New(cert.Config{
		Store: state, Key: p.key, Policy: policies.Current,
		Authority: func() (*ca.Authority, error) { return p.issuing, nil },
	})
	clients := oidc.New(oidc.Config{
		Store: state, Key: p.key, Policy: policies.Current, Listen: "127.0.0.1:0", Users: p.path("users"),
		Audit: server.NewAudit(state, log), Logger: log,
	})
	s, err := server.New(server.Config{
		Policies: policies, Store: state, Key: p.key, Logger: log,
		Kinds:       []server.Kind{skewed{issuer, p}, config.Artifacts(p.path("artifacts")), struct{ server.Answerer }{clients}},
		Certificate: skewed{issuer, p}.Certificate,
	})
	if err != nil {
		return err
	}
	return s.Serve(ctx, p.f.net.listen(p.name, l))
}

// skewed is kind cert by the provider's clock.
type skewed struct {
	*cert.Issuer
	p *Provider
}

func (s skewed) Nonce(now time.Time) string { return s.Issuer.Nonce(now.Add(s.p.ahead())) }

func (s skewed) Authenticate(ctx context.Context, c server.Call, binding []byte) (server.Decision, error) {
	c.Now = c.Now.Add(s.p.ahead())
	return s.Issuer.Authenticate(ctx, c, binding)
}

func (s skewed) Answer(ctx context.Context, c server.Call) (server.Decision, error) {
	c.Now = c.Now.Add(s.p.ahead())
	return s.Issuer.Answer(ctx, c)
}

func (s skewed) Certificate() (*tls.Certificate, error) {
	off := s.p.ahead()
	if off == 0 {
		return s.Issuer.Certificate()
	}
	key, err := ca.NewKey()
	if err != nil {
		return nil, err
	}
	now := time.Now().Add(off)
	leaf, err := s.p.issuing.Issue(s.p.self().ID, key.Public(), now.Add(s.p.f.Lifetime), now)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, s.p.issuing.Certificate.Raw}, PrivateKey: key}, nil
}

// mortal is the state as a process has it, which may die before and after each use.
type mortal struct {
	store.Store
	provider *Provider
	life     *life
}

func (m mortal) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := m.life.moment("get"); err != nil {
		return store.Entry{}, err
	}
	return m.Store.Get(ctx, key)
}

func (m mortal) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	if err := m.life.moment("commit"); err != nil {
		return 0, err
	}
	revision, err := m.Store.Commit(ctx, txn)
	if err == nil {
		m.provider.committed(txn)
	}
	if dead := m.life.moment("committed"); dead != nil {
		return 0, dead
	}
	return revision, err
}

// writer takes lines.
type writer func(line string)

func (w writer) Write(b []byte) (int, error) {
	w(string(b))
	return len(b), nil
}
