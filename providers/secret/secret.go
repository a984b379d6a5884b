// Package secret implements the kind of need "secret", for generated secrets such as passwords and
// keys that services share. The provider makes each secret once and gives it to all its readers:
//
//	POST /secret/request {"secret":"mesh","generate":"wireguard","length":0,"rotate":0,"overlap":0,"two":false}
//	→ {"secret":"…","public":"…","other":"","generation":"1"}
//
// Readers on several hosts receive the same secret, whichever of them requests it first. A new
// secret is made if the topology raises the generation, or if the topology has the secret rotate
// and the secret is old enough.
//
// A reader can hold two values during a rotation, so that it accepts the value that any other
// reader has at that time. Besides the value in use, it then holds the next value before it is
// used, and afterwards the former value, each for the length of the overlap.
//
// Secrets are sealed in the state store, which replicas share. Operators read the public keys of
// key pairs through the API of kind config, which passes their requests to a Unix socket of this
// process.
package secret

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Name is the name of this kind of need.
const Name = "secret"

// repeated is the time for which the same request receives the recorded answer instead of a new
// one.
const repeated = 30 * time.Second

// Settings is the section of the settings file for kind "secret".
type Settings struct {
	// Control is the path of the Unix socket at which the process of kind config calls this
	// process. Config is the Unix account of that process. The defaults suit the units of a host.
	Control string `json:"control" path:""`
	Config  string `json:"config"`
}

// Kind returns the kind of need that runs in the given process.
func (s *Settings) Kind(p server.Process) server.AnyKind {
	return server.Any(New(Config{Store: p.Store, Key: p.Key, Policy: server.Compiled[Policy](p.Policies), Relay: announced.OperatorConfig{
		Socket:  cmp.Or(s.Control, filepath.Join("/run", p.Instance.Unit("provider-"+Name), announced.OperatorSocket)),
		Account: cmp.Or(s.Config, p.Instance.Unit("provider-config")), Policies: p.Policies, Audit: p.Audit, Logger: p.Logger,
	}}))
}

// Config configures Secrets. All fields are required, but only Run uses Policy and Relay.
type Config struct {
	Store store.Store
	Key   *sealedstore.Key

	// Policy returns the policy in force, or nil while the policy does not include this kind.
	Policy func() *Policy
	Relay  announced.OperatorConfig
}

// Secrets implements the kind of need "secret".
type Secrets struct {
	values
	policy func() *Policy
	relay  announced.OperatorConfig
}

var (
	_ server.Kind[*Policy] = (*Secrets)(nil)
	_ server.Runner        = (*Secrets)(nil)
	_ server.Sealer        = (*Secrets)(nil)
)

// New returns Secrets with a configuration.
func New(c Config) *Secrets {
	c.Relay.Logger = cmp.Or(c.Relay.Logger, slog.Default())
	return &Secrets{values{c.Store, c.Key}, c.Policy, c.Relay}
}

// Name returns the name of this kind of need, "secret".
func (s *Secrets) Name() string { return Name }

// Request describes a generated secret that the policy lets a host request.
type Request struct {
	Secret   string `json:"secret"`   // name of the secret
	Generate string `json:"generate"` // form of the secret, such as "wireguard"
	Length   int    `json:"length"`   // length in characters; 0 for a key pair
	Rotate   int64  `json:"rotate"`   // seconds after which the secret is replaced; 0 for never
	Overlap  int64  `json:"overlap"`  // seconds for which some readers hold two values; 0 if none does
	Two      bool   `json:"two"`      // this reader holds two values
}

// spec is the form of one secret in a policy.
type spec struct {
	Request
	Generation int
	Serial     int64 // of the policy, of a call
}

// Policy lists the generated secrets and the hosts that may request them. Compile decodes it from
// the policy of the provider host.
type Policy struct {
	requests server.Requests[Request]
	specs    map[string]spec // by name
}

// Compile decodes which secrets the policy lets hosts request. It returns an error for any
// settings, because the kind has none.
//
// During a rollout, the policy also grants requests of the former version, so requests for one
// secret may differ. The highest generation then applies to all hosts that read the secret.
func (s *Secrets) Compile(p document.Policy) (*Policy, error) {
	if err := server.Settings(p, Name, &struct{}{}); err != nil {
		return nil, err
	}
	policy := &Policy{specs: map[string]spec{}}
	var err error
	policy.requests, err = server.DecodeGrants(p, Name, func(g document.Grant) (r Request, err error) {
		if err = strictjson.Decode(g.Request, &r); err == nil {
			err = r.validate()
		}
		if err != nil {
			return r, err
		}
		now, there := policy.specs[r.Secret]
		if wants := (spec{Request: r, Generation: g.Generation}); !there || now.before(wants) {
			policy.specs[r.Secret] = wants
		}
		return r, nil
	})
	return policy, err
}

// before reports whether a spec takes precedence over the spec in another grant of the same secret.
// All processes with the same policy therefore choose the same spec.
func (s spec) before(other spec) bool {
	return cmp.Or(
		cmp.Compare(s.Generation, other.Generation), cmp.Compare(s.Overlap, other.Overlap), cmp.Compare(s.Rotate, other.Rotate),
		cmp.Compare(s.Length, other.Length), cmp.Compare(s.Generate, other.Generate)) < 0
}

func (r Request) validate() error {
	g, known := generators[r.Generate]
	switch {
	case r.Secret == "" || strings.ContainsAny(r.Secret, "/\x00"):
		return fmt.Errorf("secret %q: not the name of one", r.Secret)
	case !known:
		return fmt.Errorf("generate %q: want one of %s", r.Generate, strings.Join(slices.Sorted(maps.Keys(generators)), ", "))
	case g.text != nil && (r.Length < 1 || r.Length > longest):
		return fmt.Errorf("length %d: want 1 to %d characters", r.Length, longest)
	case g.text == nil && r.Length != 0:
		return fmt.Errorf("length %d: keys of form %q have one length, want 0", r.Length, r.Generate)
	case r.Rotate < 0 || r.Overlap < 0 || r.Rotate > 0 && r.Overlap > r.Rotate/2:
		return fmt.Errorf("overlap of %d seconds, rotated after %d: want it half of that at most", r.Overlap, r.Rotate)
	case r.Two && r.Overlap == 0:
		return errors.New("a reader that holds two for no time: want an overlap")
	}
	return nil
}

// Answer returns the value of a generated secret that is in use now, and the public key if the
// secret is a key pair. If the secret does not exist yet, Answer generates it. If the request asks
// for two values, the answer also contains the next or the former value.
func (s *Secrets) Answer(ctx context.Context, p *Policy, c server.Call) (server.Decision, error) {
	request := p.requests.Of(c)
	want := p.specs[request.Secret]
	want.Serial = c.Serial
	ring, d, err := s.due(ctx, c.Now, want)
	if err != nil {
		return d, err
	}
	use := ring[ring.at(c.Now)]
	d.Answer.Values = map[string]string{"secret": use.Secret, "generation": strconv.Itoa(c.Request.Generation)}
	if use.Public != "" {
		d.Answer.Values["public"] = use.Public
	}
	if request.Two {
		d.Answer.Values["other"] = ring.other(c.Now).Secret
	}
	d.Repeated = ring.until(c.Now, want)
	d.Detail = map[string]string{"secret": request.Secret, "generation": strconv.Itoa(use.Generation), "made": stamp(use.Made)}
	if newest := ring[len(ring)-1]; newest.Uses > use.Uses {
		d.Detail["next"] = stamp(newest.Uses)
	}
	return d, nil
}

func stamp(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }

// Reseal encrypts the stored secrets again, with the newest secret of the sealing key. Values that
// this secret has encrypted already are left unchanged.
func (s *Secrets) Reseal(ctx context.Context) error {
	return sealedstore.Walk(ctx, s.db, prefix, s.key.Reseal)
}
