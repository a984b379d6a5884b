// Package federation implements the kind of need that gives services the bundles of foreign trust
// domains, and the SPIFFE bundle endpoint of this trust domain (SPIFFE Federation):
//
//	POST /federation/request {"trustDomain":"blue.example"}
//	→ bundle, the bundle of blue.example in force
//	GET /federation/bundle
//	→ the bundle of this trust domain, for everybody
//
// The endpoint presents the X.509-SVID of the process. It requests no client certificate, because
// the bundle is public. The settings may add an endpoint with a Web PKI certificate.
//
// Foreign bundles are fetched from the endpoint in the policy. With profile https_spiffe, the
// endpoint must present the SPIFFE ID in the policy, in a certificate that the bundle in force
// verifies. With profile https_web, it must present a certificate for the name in its URL, from a
// public CA or from a root in the policy. The first bundle is in the policy. A bundle with a lower
// sequence number is refused with an audit row. After any failure the last good bundle stays in
// force.
//
// Its Runner owns one goroutine for each request to an endpoint.
package federation

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/spiffebundle"
	"github.com/spiffe/go-spiffe/v2/federation"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Name is the name of the kind.
const Name = document.KindFederation

// Settings is the kind's section of the settings file.
type Settings struct {
	// Keys is the path of the file with the keys that verify JWT-SVIDs of this trust domain. A need
	// of kind jwt writes the file. If Keys is empty, the bundle contains no such keys.
	Keys string `json:"keys" path:""`

	// Listen, Certificate and Key configure a bundle endpoint of profile https_web. If Listen is
	// empty, there is no such endpoint.
	Listen      string `json:"listen"`
	Certificate string `json:"certificate" path:""`
	Key         string `json:"key" path:""`
}

// Kind returns the kind "federation" for a provider process.
func (s *Settings) Kind(p server.Process) server.AnyKind {
	return server.Any(New(Config{Store: p.Store, Policy: server.Compiled[Policy](p.Policies), Keys: s.Keys,
		Web: Web{s.Listen, s.Certificate, s.Key}, Logger: p.Logger}))
}

// State returns the keys in the state store that belong in a backup: the bundles that were received
// from foreign trust domains.
func (s *Settings) State() server.State { return server.State{Remembered: []string{Name + "/"}} }

// Config configures a Federation. Store and Policy are required.
type Config struct {
	Store  store.Store
	Policy func() *Policy // policy in force; nil while it does not include this kind
	Keys   string         // see Settings
	Web    Web
	Logger *slog.Logger // nil for slog.Default()
}

// Federation implements the kind "federation". It gives services the trust bundles of foreign trust
// domains. A trust bundle contains the keys and roots with which to verify the identities of a
// trust domain.
type Federation struct {
	Config
	own atomic.Pointer[spiffebundle.Bundle] // bundle of this trust domain; nil until it has a sequence number
}

var (
	_ server.Kind[*Policy] = (*Federation)(nil)
	_ server.Runner        = (*Federation)(nil)
	_ server.Router        = (*Federation)(nil)
)

// New returns a Federation with a configuration.
func New(c Config) *Federation {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return &Federation{Config: c}
}

// Name returns the name of the kind.
func (f *Federation) Name() string { return Name }

// Policy lists the foreign trust domains, and tells how to fetch their bundles. Compile decodes it
// from the policy of the provider host.
type Policy struct {
	roots    *trust.Roots  // roots of this trust domain
	refresh  time.Duration // refresh hint in the bundle of this trust domain
	trusts   map[string]*trusted
	requests server.Requests[string] // trust domains
}

// trusted is a foreign trust domain whose bundle the policy provides to services.
type trusted struct {
	name       string
	key        string // key of its record in the store, with its name in the flake
	endpoint   string
	endpointID spiffeid.ID    // zero for profile https_web
	webRoots   *x509.CertPool // roots for https_web; nil for the roots of the machine
	first      *trust.Bundle
	digest     string // digest of the policy's bundle
}

// Compile decodes the policy of a provider host. It returns an error if the settings for a foreign
// trust domain do not permit fetching its bundle, for example because the endpoint is not an https
// URL.
func (f *Federation) Compile(policy document.Policy) (*Policy, error) {
	var settings struct {
		Refresh int64 `json:"refresh"` // seconds
		Trusts  []struct {
			Name        string `json:"name"`
			TrustDomain string `json:"trustDomain"`
			Endpoint    string `json:"endpoint"`
			Bundle      string `json:"bundle"`
			authentication
		} `json:"trusts"`
	}
	if err := server.Settings(policy, Name, &settings); err != nil {
		return nil, err
	}
	roots, err := trust.NewRoots(policy.TrustDomain, policy.Trust.Roots)
	if err != nil {
		return nil, fmt.Errorf("policy of %s: %w", policy.Host, err)
	}
	p := &Policy{roots: roots, refresh: time.Duration(settings.Refresh) * time.Second, trusts: map[string]*trusted{}}
	for _, s := range settings.Trusts {
		t := &trusted{name: s.TrustDomain, key: foreignAt + s.Name, endpoint: s.Endpoint, digest: document.Digest([]byte(s.Bundle))}
		u, err := url.Parse(s.Endpoint)
		if err == nil && (u.Scheme != "https" || u.Host == "" || u.User != nil) {
			err = fmt.Errorf("endpoint %q: want an https URL", s.Endpoint)
		}
		if err == nil {
			t.first, err = trust.ParseBundle(s.TrustDomain, []byte(s.Bundle))
		}
		if err == nil {
			err = t.authenticate(s.authentication)
		}
		switch {
		case err != nil:
		case s.TrustDomain == policy.TrustDomain || p.trusts[s.TrustDomain] != nil:
			err = fmt.Errorf("want foreign trust domains, each once")
		}
		if err != nil {
			return nil, fmt.Errorf("policy of %s: kind %q: trust domain %q: %w", policy.Host, Name, s.TrustDomain, err)
		}
		p.trusts[s.TrustDomain] = t
	}
	p.requests, err = server.DecodeGrants(policy, Name, func(g document.Grant) (string, error) {
		var r request
		err := strictjson.Decode(g.Request, &r)
		if err == nil && p.trusts[r.TrustDomain] == nil {
			err = fmt.Errorf("trust domain %q is not among those of the policy", r.TrustDomain)
		}
		return r.TrustDomain, err
	})
	return p, err
}

// request contains the parameters of a need of kind federation.
type request struct {
	TrustDomain string `json:"trustDomain"`
}

// Answer returns the newest valid bundle of the requested trust domain, as JSON in the value named
// bundle. A host may use the bundle for twice the time after which the bundle asks to be fetched
// again (its refresh hint).
func (f *Federation) Answer(ctx context.Context, p *Policy, c server.Call) (server.Decision, error) {
	b, _, err := f.inForce(ctx, p.trusts[p.requests.Of(c)])
	if err != nil {
		return server.Decision{}, err
	}
	text, err := b.Marshal()
	hint := hint(b)
	return server.Decision{
		Answer:   hostapi.Answer{Values: map[string]string{"bundle": string(text)}, Expires: c.Now.Add(max(2*hint, 2*time.Second)).Unix()},
		Repeated: c.Now.Add(hint / 4),
		Detail:   map[string]string{"trustDomain": b.TrustDomain(), "sequence": fmt.Sprint(b.Sequence())},
	}, err
}

// These constants limit the interval between two requests to an endpoint, and set the interval for
// a bundle without a refresh hint.
const (
	soonest = time.Second
	usual   = 5 * time.Minute
	latest  = 24 * time.Hour
)

// hint returns how long to wait before a bundle is fetched again.
func hint(b *trust.Bundle) time.Duration {
	if b.RefreshHint() == 0 {
		return usual
	}
	return min(max(b.RefreshHint(), soonest), latest)
}

// Routes returns the HTTP handler that serves the bundle of this trust domain to others. Callers
// need no certificate, because bundles are public. Requests leave no audit rows.
func (f *Federation) Routes(*server.Server) map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{bundleRoute: f.serveBundle}
}

const bundleRoute = "GET /" + Name + "/bundle"

func (f *Federation) serveBundle(w http.ResponseWriter, r *http.Request) {
	own := f.own.Load()
	if f.Policy() == nil || own == nil {
		http.Error(w, "no bundle is served here now", http.StatusServiceUnavailable)
		return
	}
	h, err := federation.NewHandler(own.TrustDomain(), own)
	if err != nil {
		panic(err) // without options
	}
	h.ServeHTTP(w, r)
}

func marshal(v any) []byte {
	return strictjson.Encode(v)
}
