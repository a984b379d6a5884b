package laws

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/agent/forward/inbound"
	"github.com/florete/florete/agent/forward/outbound"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/pubkey"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
	databases "github.com/florete/florete/providers/database"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/federation"
	files "github.com/florete/florete/providers/file"
	"github.com/florete/florete/providers/git"
	"github.com/florete/florete/providers/jwt"
	"github.com/florete/florete/providers/oidc"
	custom "github.com/florete/florete/providers/own"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/secret"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/ssh"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/providers/tls"
	"github.com/florete/florete/providers/token"
	"github.com/florete/florete/tests/kit"
)

// TestWhatCompilesIsAccepted checks that documents without faults are accepted by the code of
// hosts, providers and forwarders.
func TestWhatCompilesIsAccepted(t *testing.T) {
	r := newReaders(t)
	for _, s := range samples(t) {
		if err := r.refusal(s.more); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	if r.answers < 10*len(samples(t)) {
		t.Errorf("only %d needs were answered", r.answers)
	}
}

// readers are the programs that read documents, without the machines they run on.
type readers struct {
	t       *testing.T
	store   *sqlite.Store
	key     *sealedstore.Key
	issuing *ca.Authority
	in      *inbound.Server
	out     *outbound.Server
	answers int
}

func newReaders(t *testing.T) *readers {
	t.Helper()
	r := &readers{t: t, issuing: authorities().issuing}
	var err error
	if r.store, err = sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.store.Close() })
	if r.key, err = sealedstore.New(make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	r.in = inbound.New(inbound.Config{Identities: func() *hostdir.SVIDSet { return &hostdir.SVIDSet{} }, Metrics: new(telemetry.Counters), Usage: &usage.Table{}, Whois: &whois.Table{}, Log: log})
	r.out = outbound.New(outbound.Config{Identities: func() *hostdir.SVIDSet { return &hostdir.SVIDSet{} }, Sockets: &handover.Store{}, Metrics: new(telemetry.Counters), Log: log})
	t.Cleanup(func() { r.in.Close(); r.out.Close() })
	return r
}

// refusal returns the error with which a program refuses documents, or nil.
func (r *readers) refusal(c compiled) error {
	for _, host := range slices.Sorted(maps.Keys(c.Documents)) {
		dir := r.t.TempDir()
		for _, raw := range c.Documents[host] {
			d, err := raw.Open()
			if err != nil {
				return fmt.Errorf("open: %w", err)
			}
			if err := d.Write(dir); err != nil {
				return err
			}
		}
		m, err := r.host(dir)
		if err != nil {
			return fmt.Errorf("host %s: %w", host, err)
		}
		if err := r.forwarder(m); err != nil {
			return fmt.Errorf("forwarder of %s: %w", host, err)
		}
		if _, provides := c.Documents[host][document.DocPolicy]; provides {
			if err := r.provider(dir); err != nil {
				return fmt.Errorf("provider %s: %w", host, err)
			}
		}
	}
	return nil
}

// host reads documents as activation does before it calls a provider.
func (r *readers) host(dir string) (document.Manifest, error) {
	store, _, err := documents.Open(hostdir.Layout(r.t.TempDir()), dir, func(string) {})
	if err != nil {
		return document.Manifest{}, err
	}
	m := store.Set().Manifest
	_, problems := hostdir.LoadSVIDs(hostdir.Layout(r.t.TempDir()), m, &hostdir.SVIDSet{})
	return m, errors.Join(problems...)
}

// forwarder puts the rules in force in a forwarder, without the addresses and accounts of a
// machine.
func (r *readers) forwarder(m document.Manifest) error {
	f := m.Forwarder
	f.Listen, f.Publish, f.Callers = nil, slices.Clone(f.Publish), slices.Clone(f.Callers)
	for i := range f.Publish {
		f.Publish[i].User = ""
		if path, ok := strings.CutPrefix(f.Publish[i].Upstream, "unix:"); ok {
			if _, err := net.Dial("unix", path); err != nil && strings.Contains(err.Error(), "invalid argument") {
				return fmt.Errorf("upstream %s: %w", path, err)
			}
		} else if _, err := net.ResolveTCPAddr("tcp", numeric(f.Publish[i].Upstream)); err != nil {
			return fmt.Errorf("upstream: %w", err)
		}
	}
	for i := range f.Callers {
		f.Callers[i].Users = nil
	}
	errs := r.in.Apply(f)
	m.Forwarder = f
	for _, err := range r.out.Apply(m) {
		if of := new(net.OpError); !errors.As(err, &of) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// numeric replaces the host of host:port by one that needs no resolver.
func numeric(hostport string) string {
	host, port, err := net.SplitHostPort(hostport)
	if err == nil && net.ParseIP(host) == nil {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return hostport
}

// provider puts a policy in force in the process of each kind, and requests everything that it
// grants.
func (r *readers) provider(dir string) error {
	doc, err := document.Read(dir, document.DocPolicy)
	if err != nil {
		return err
	}
	for name := range doc.Policy().Kinds {
		policies, err := server.OpenPolicies(dir, filepath.Join(dir, "revocations.json"), name, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		if err := r.kind(name, policies); err != nil {
			return err
		}
	}
	return nil
}

func (r *readers) kind(name string, policies *server.Policies) error {
	p := policies.Current()
	switch name {
	case cert.Name:
		return answers(r, p, cert.New(cert.Config{Store: r.store, Key: r.key, Policy: server.Compiled[cert.Policy](policies), Authority: func() (*ca.Authority, error) { return r.issuing, nil }}))
	case oidc.Name:
		return answers(r, p, oidc.New(oidc.Config{Store: r.store, Key: r.key, Policy: server.Compiled[oidc.Policy](policies)}))
	case jwt.Name:
		return answers(r, p, jwt.New(jwt.Config{Store: r.store, Key: r.key, Policy: server.Compiled[jwt.Policy](policies)}))
	case ssh.Name:
		return answers(r, p, ssh.New(r.store, r.key))
	case token.Name:
		return answers(r, p, token.New(token.Config{Store: r.store, Key: r.key, Policy: server.Compiled[token.Policy](policies)}))
	case secret.Name:
		return answers(r, p, secret.New(secret.Config{Store: r.store, Key: r.key}))
	case databases.Name:
		return answers(r, p, databases.New(databases.Config{Store: r.store, Key: r.key, Dir: r.t.TempDir()}))
	case git.Name:
		return answers(r, p, git.New(git.Config{Store: r.store, Key: r.key, Dir: r.t.TempDir()}))
	case tls.Name:
		return answers(r, p, tls.New(tls.Config{Store: r.store, Key: r.key}))
	case federation.Name:
		return answers(r, p, federation.New(federation.Config{Store: r.store, Policy: server.Compiled[federation.Policy](policies)}))
	case files.Name:
		return answers(r, p, files.Files{Dir: r.t.TempDir(), Store: r.store, Key: r.key})
	case distribution.Name:
		return distribution.Check(p)
	}
	return answers(r, p, custom.New(custom.Config{Name: name, Store: r.store, Key: r.key, Dir: r.t.TempDir()}))
}

// answers makes a kind compile a policy and answer all of its needs that the policy grants.
func answers[P any](r *readers, p document.Policy, k server.Kind[P]) error {
	compiled, err := k.Compile(p)
	if err != nil {
		return err
	}
	for _, g := range p.Grants {
		if g.Kind != k.Name() {
			continue
		}
		if err := r.answer(p, g, func(c server.Call) error {
			_, err := k.Answer(context.Background(), compiled, c)
			return err
		}); err != nil {
			return fmt.Errorf("need %s of %s: %w", g.Need, g.Caller.Short(), err)
		}
	}
	return nil
}

// answer requests a grant. It is no refusal if a file, an executable, a database server or a forge
// is missing.
func (r *readers) answer(p document.Policy, g document.Grant, ask func(server.Call) error) error {
	r.answers++
	body := g.Request
	if g.Kind == cert.Name {
		var err error
		if body, err = withCSR(g.Request); err != nil {
			return err
		}
	}
	if g.Kind == ssh.Name {
		of, err := document.Need{ID: g.Need, Request: g.Request}.SSH()
		if err != nil {
			return err
		}
		if _, public, err := pubkey.NewSSH(); err != nil {
			return err
		} else if !of.ID.IsZero() {
			body = kit.JSON(hostapi.SSHBody{ID: of.ID, PublicKey: strings.TrimSuffix(string(gossh.MarshalAuthorizedKey(public)), "\n")})
		}
	}
	if g.Kind == tls.Name {
		var of document.PublicNames
		if err := json.Unmarshal(g.Request, &of); err != nil {
			return err
		}
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: of.Names}, authorities().issuing.Key)
		if err != nil {
			return err
		}
		body = kit.JSON(map[string]any{"names": of.Names, "internal": of.Internal, "shared": of.Shared, "csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))})
	}
	request := hostapi.Request{Need: g.Need, Serial: 1, Generation: g.Generation, Body: body}
	b, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if len(b) > hostapi.MaxRequest {
		return fmt.Errorf("request of %d bytes, want at most %d", len(b), hostapi.MaxRequest)
	}
	if g.Caller.Kind() != spiffe.KindNode {
		return fmt.Errorf("caller is a %s", g.Caller.Kind())
	}
	err = ask(server.Call{Caller: g.Caller, Request: request, Grant: g, Policy: p, Now: time.Now()})
	// The rules of a tenant need not permit what a service requests.
	if refused := new(hostapi.Error); g.Kind == token.Name && errors.As(err, &refused) && refused.Code == hostapi.CodeNotGranted.Name {
		return nil
	}
	if missing := new(hostapi.Error); errors.As(err, &missing) && (missing.Code == hostapi.CodeMissing.Name || missing.Code == hostapi.CodeUnavailable.Name) {
		return nil
	}
	return err
}

// withCSR returns the request for a certificate as a host sends it.
func withCSR(request json.RawMessage) (json.RawMessage, error) {
	var of hostapi.CertBody
	if err := json.Unmarshal(request, &of); err != nil {
		return nil, err
	}
	csr, err := ca.NewCSR(of.ID, authorities().issuing.Key)
	if err != nil {
		return nil, err
	}
	of.CSR = string(csr)
	return json.Marshal(of)
}
