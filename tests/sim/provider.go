package sim

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/oidc"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/ssh"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
)

// kinds lists the kinds of need that a provider serves. Each kind has its own address.
var kinds = []string{cert.Name, distribution.Name, oidc.Name, ssh.Name}

// Provider is a simulated provider host that answers needs of the kinds cert, config, oidc and ssh. Each
// kind has a real state store of its own. All kinds die at the same time. Of the kind oidc, only
// the registration of clients runs, and not the sign-in pages.
type Provider struct {
	process
	dir string
	ca  *kit.CA
	key *sealedstore.Key

	mu   sync.Mutex
	skew time.Duration
}

func newProvider(f *Fleet, name string) *Provider {
	p := &Provider{dir: filepath.Join(f.dir, name)}
	p.process = process{f: f, name: name, run: p.serve, dead: func(*life) {}}
	f.must(os.Mkdir(p.dir, 0o700))
	f.must(os.WriteFile(p.path("users"), []byte("[]"), 0o600))
	var err error
	p.key, err = sealedstore.Load(p.path("seal.key"))
	f.must(err)
	p.ca = f.ca.Beside()
	return p
}

func (p *Provider) path(name string) string { return filepath.Join(p.dir, name) }

func (p *Provider) self(kind string) document.Provider {
	at := fmt.Sprintf("%s:%d", p.name, 4600+slices.Index(kinds, kind))
	return document.Provider{ID: kit.ProviderID(p.name, kind), Addresses: document.Addresses{at}}
}

// Skew sets how far the provider's clock is ahead of the right time. The wrong time affects nonces
// and the certificates that the provider issues, also to itself. All other decisions use the right
// time.
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

// serve runs the provider for one life. It does the work of flor-provider on the simulated network.
func (p *Provider) serve(ctx context.Context, l *life) {
	var all sync.WaitGroup
	for _, kind := range kinds {
		all.Go(func() {
			if err := p.server(ctx, l, kind); err != nil && l.alive() {
				p.f.Errorf("%s, kind %s, ended: %v", p.name, kind, err)
			}
		})
	}
	all.Wait()
}

func (p *Provider) server(ctx context.Context, l *life, kind string) error {
	log := slog.New(slog.NewTextHandler(writer(func(line string) { p.f.log("%s: %s", p.name, line) }), &slog.HandlerOptions{Level: slog.LevelError}))
	db, err := sqlite.Open(p.path(kind+".db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	state := mortal{Store: db, provider: p, life: l}
	policies, err := server.OpenPolicies(p.path("policy"), p.path("revocations.json"), kind, log)
	if err != nil {
		return err
	}
	c := server.Config{Policies: policies, Store: state, Key: p.key, Logger: log}
	c.Certificate = func() (*tls.Certificate, error) { return p.svid(kind) } // as activation would deliver it
	switch kind {
	case cert.Name:
		issuer := skewed{cert.New(cert.Config{
			Store: state, Key: p.key, Policy: server.Compiled[cert.Policy](policies),
			Authority: func() (*ca.Authority, error) { return p.ca.Issuing, nil },
		}), p}
		c.Kind, c.Certificate = server.Any(issuer), issuer.Certificate
	case distribution.Name:
		c.Kind = distribution.New(archive.Archive{Store: state}).Kind()
	case oidc.Name:
		c.Kind = server.Any(struct{ server.Kind[*oidc.Policy] }{oidc.New(oidc.Config{
			Store: state, Key: p.key, Policy: server.Compiled[oidc.Policy](policies), Listen: "127.0.0.1:0", Users: p.path("users"),
			Audit: server.NewAudit(state, log), Logger: log,
		})})
	case ssh.Name:
		c.Kind = server.Any(ssh.New(state, p.key))
	}
	s, err := server.New(c)
	if err != nil {
		return err
	}
	return s.Serve(ctx, p.f.net.listen(p.self(kind).Addresses[0], l))
}

// publish imports documents as flor-provider import does. The provider may be running or stopped.
func (p *Provider) publish(tree archive.SignedTree, key string) error {
	db, err := sqlite.Open(p.path(distribution.Name+".db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	var b bytes.Buffer
	if err := tree.Encode(&b); err != nil {
		return err
	}
	r, err := archive.NewStreamReader(&b)
	if err != nil {
		return err
	}
	_, _, err = archive.Archive{Store: db}.Import(context.Background(), r, archive.Terms{Signers: signers.Any(key), Keep: 10})
	return err
}

// svid returns a new SVID for the process of a kind, issued with the time of the provider's clock.
func (p *Provider) svid(kind string) (*tls.Certificate, error) {
	now := time.Now().Add(p.ahead())
	return p.ca.IssueAt(p.self(kind).ID, now, now.Add(p.f.Lifetime)), nil
}

// skewed is the kind cert with the clock of the provider, which may be wrong.
type skewed struct {
	*cert.Issuer
	p *Provider
}

func (s skewed) Nonce(now time.Time) string { return s.Issuer.Nonce(now.Add(s.p.ahead())) }

func (s skewed) Authenticate(ctx context.Context, c server.Call, binding []byte) (server.Decision, error) {
	c.Now = c.Now.Add(s.p.ahead())
	return s.Issuer.Authenticate(ctx, c, binding)
}

func (s skewed) Answer(ctx context.Context, p *cert.Policy, c server.Call) (server.Decision, error) {
	c.Now = c.Now.Add(s.p.ahead())
	return s.Issuer.Answer(ctx, p, c)
}

func (s skewed) Certificate() (*tls.Certificate, error) {
	if s.p.ahead() == 0 {
		return s.Issuer.Certificate()
	}
	return s.p.svid(cert.Name)
}

// mortal is the store of a process that may die before and after each operation on the store.
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

// writer is a function that receives each line that is written to it.
type writer func(line string)

func (w writer) Write(b []byte) (int, error) {
	w(string(b))
	return len(b), nil
}
