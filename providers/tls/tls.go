// Package tls implements the kind of need "tls", for certificates of public names such as
// wiki.example.org (ACME, RFC 8555):
//
//	POST /tls/request {"names":["wiki.example.org"],"internal":false,"shared":false,"csr":"-----BEGIN…"}
//	→ {"certificate":"-----BEGIN CERTIFICATE-----…"}
//
//	POST /tls/request {"names":[],"internal":false,"shared":false}
//	→ {"thumbprint":"LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ"}
//
// The host makes the key, and the provider orders the certificate. If several hosts accept
// connections for one name, or one certificate covers all names below a domain, the provider also
// makes the key, and gives the key and the certificate to all of these hosts.
//
// The answer to an HTTP-01 challenge consists of the token, a dot, and the thumbprint of the
// account's key (RFC 8555, section 8.1). So each ingress can answer by itself, and the provider
// sends it nothing while an order is open. DNS-01 uses lego's providers.
//
// For names outside DNS, this kind has a CA of its own, which is valid for those names alone.
package tls

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Name is the name of this kind of need.
const Name = "tls"

// patience is the longest time that a request waits for its order. It is shorter than the time that
// a host waits for an answer.
const patience = 12 * time.Second

// repeated is the time for which the same request receives the recorded answer instead of a new
// one.
const repeated = 30 * time.Second

// Settings is the section of the settings file for kind "tls".
type Settings struct {
	// Environment is the path of a file with the credentials of the policy's DNS provider. Its
	// lines have the form KEY=VALUE, such as HTTPREQ_PASSWORD=…. Environment is empty for HTTP-01
	// challenges.
	Environment string `json:"environment" path:""`

	// Resolvers lists the DNS servers (host:port) to ask for public names. They must see these
	// names as the CA does. By default, the host's own DNS servers are used.
	Resolvers []string `json:"resolvers"`

	// Roots is the path of the root certificates (PEM) of the ACME server, if the system does not
	// trust them.
	Roots string `json:"roots" path:""`

	// Control is the path of the Unix socket at which the process of kind config calls this
	// process. Config is the Unix account of that process. The defaults suit the units of a host.
	Control string `json:"control" path:""`
	Config  string `json:"config"`
}

// Kind returns the kind of need that runs in the given process.
func (s *Settings) Kind(p server.Process) server.AnyKind {
	return server.Any(New(Config{
		Store: p.Store, Key: p.Key, Policy: server.Compiled[Policy](p.Policies), Logger: p.Logger,
		Environment: s.Environment, Resolvers: s.Resolvers, Roots: s.Roots,
		Relay: announced.OperatorConfig{
			Socket:  cmp.Or(s.Control, filepath.Join("/run", p.Instance.Unit("provider-"+Name), announced.OperatorSocket)),
			Account: cmp.Or(s.Config, p.Instance.Unit("provider-config")), Policies: p.Policies, Audit: p.Audit, Logger: p.Logger,
		},
	}))
}

// Config configures Certificates. Store and Key are required. Run also requires Policy and Relay.
type Config struct {
	Store  store.Store
	Key    *sealedstore.Key
	Policy func() *Policy // returns the policy in force, or nil while it does not run this kind
	Relay  announced.OperatorConfig
	Logger *slog.Logger

	Environment string
	Resolvers   []string
	Roots       string

	// Dial connects to an ingress to check whether the ingress answers HTTP-01 challenges. If it is
	// nil, TCP is used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Certificates implements the kind of need "tls".
type Certificates struct {
	Config
	records
	ingress *http.Client // reads as the CA does, over HTTP

	mu      sync.Mutex
	clients map[string]*client // by directory and contact
	flights map[string]*flight // by names

	ctx   context.Context // of orders, which no request ends
	stop  context.CancelFunc
	owned sync.WaitGroup
}

var (
	_ server.Kind[*Policy] = (*Certificates)(nil)
	_ server.Runner        = (*Certificates)(nil)
	_ server.Sealer        = (*Certificates)(nil)
)

// New returns Certificates with a configuration.
func New(c Config) *Certificates {
	quiet()
	c.Logger = cmp.Or(c.Logger, slog.Default())
	k := &Certificates{Config: c, records: records{c.Store, c.Key}, clients: map[string]*client{}, flights: map[string]*flight{}}
	k.ctx, k.stop = context.WithCancel(context.Background())
	k.ingress = &http.Client{
		Timeout:       5 * time.Second,
		Transport:     &http.Transport{DialContext: c.Dial, DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return k
}

// Name returns the name of this kind of need, "tls".
func (k *Certificates) Name() string { return Name }

// Answer returns a certificate chain for the requested names. If several hosts share the
// certificate, the answer also contains its private key. If there is no certificate yet, or if it
// is time to renew it, Answer orders a new one from the CA, and the host may have to request again
// later.
func (k *Certificates) Answer(ctx context.Context, p *Policy, c server.Call) (server.Decision, error) {
	r := p.requests.Of(c)
	if r.account() {
		return server.Decision{Answer: hostapi.Answer{Values: map[string]string{"thumbprint": k.thumbprint(p)}}}, nil
	}
	w := wanted{Request: r, policy: p, generation: c.Grant.Generation}
	if !r.Shared {
		w.holder = c.Caller.Short()
		var err error
		if w.csr, err = parseCSR(c.Request.Body, r.Names); err != nil {
			return server.Decision{}, err
		}
	}
	have, revision, err := k.read(ctx, w.key())
	if err != nil {
		return server.Decision{}, err
	}
	var d server.Decision
	if have != nil && have.serves(w) && !r.Internal && c.Now.Unix() >= have.Look {
		k.look(ctx, p, have, c.Now)
		if d, err = k.write(w.key(), revision, have); err != nil {
			return d, err
		}
	}
	if have == nil || !have.serves(w) || c.Now.Unix() >= have.Renew {
		if r.Internal {
			if have, err = k.issue(w, c.Now); err != nil {
				return d, err
			}
			d, err = k.write(w.key(), revision, have)
		} else {
			d = server.Decision{}
			have, err = k.order(ctx, w, have)
		}
		if err != nil {
			return server.Decision{}, err
		}
	}
	d.Answer = hostapi.Answer{Values: map[string]string{"certificate": have.Chain}, Expires: have.Ends}
	if r.Shared {
		d.Answer.Values["key"] = have.Key
	}
	d.Repeated = c.Now.Add(repeated)
	d.Detail = map[string]string{"names": strings.Join(r.Names, " "), "serial": have.Serial, "until": stamp(have.Ends)}
	return d, nil
}

func stamp(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }

// Run answers requests of operators until ctx ends, and then stops the orders that are in progress.
// The requests arrive through the process of kind "config", which serves the operators' API.
func (k *Certificates) Run(ctx context.Context, ready func()) error {
	ready()
	defer k.owned.Wait()
	defer k.stop()
	announced.RunOperators(ctx, k.Relay, k.endpoint())
	return nil
}

// Close ends the orders of certificates that are in progress.
func (k *Certificates) Close() {
	k.stop()
	k.owned.Wait()
}

// Reseal encrypts the stored certificates again, with the newest secret of the sealing key. Values
// that this secret has encrypted already are left unchanged.
func (k *Certificates) Reseal(ctx context.Context) error {
	return sealedstore.Walk(ctx, k.db, prefix, k.key.Reseal)
}
