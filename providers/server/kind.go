package server

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/store"
)

// Kind answers the requests of hosts for one kind of need, such as certificates or database logins.
// The server calls it for requests at POST hostapi.Path(Name()). P is the result type of Compile. A
// Kind may also implement Runner, Deployed, Rotator, Sealer, Router and Enroller. Its methods may
// be called concurrently.
type Kind[P any] interface {
	// Name returns the name of the kind, such as "oidc". Needs and policies refer to the kind by
	// this name.
	Name() string

	// Compile decodes the settings and grants that a policy contains for the kind. It returns an
	// error if the kind cannot serve them. It is called once for each policy, before the policy
	// comes into force. Its result is passed to Answer.
	Compile(p document.Policy) (P, error)

	// Answer decides about a request. The caller is authenticated, the policy grants exactly this
	// request, and no answer is recorded yet. Answer makes no changes itself. It returns the
	// changes in the Decision, which the server commits together with the answer and the audit row
	// before it responds. If a condition of the Decision fails, or if the process ends before the
	// commit, Answer is called again. For one need of a caller, it is not called again until the
	// last Decision is committed or given up.
	//
	// For a refusal, the error is an *hostapi.Error. Any other error is internal: the caller
	// receives a transient error without details, and the reason is logged.
	Answer(ctx context.Context, p P, c Call) (Decision, error)
}

// AnyKind is the work of a server process: to answer needs as a Kind, or to provide a service that
// answers no needs. Unlike Kind, it has no type parameter. All functions except Routes may be nil.
type AnyKind struct {
	Name string

	// Routes returns the HTTP handlers of a server. The keys are patterns of http.ServeMux.
	Routes func(s *Server) map[string]http.HandlerFunc

	// Listener returns a listener that accepts the connections of the given listener, and possibly
	// further connections.
	Listener func(net.Listener) net.Listener

	// Run is the method of a Runner, and InForce the method of a Deployed.
	Run     func(ctx context.Context, ready func()) error
	InForce func(ctx context.Context) (Version, error)

	compile func(p document.Policy) (compiled, error)
	reseal  func(ctx context.Context) error
}

// compiled is a policy that a kind has compiled, together with the kind's methods that use the
// policy. Methods that the kind does not have are nil.
type compiled struct {
	policy   any
	answer   func(ctx context.Context, c Call) (Decision, error)
	rotation func(ctx context.Context, c Call) (Rotation, error)
}

// Any returns an AnyKind that does the work of a Kind. It also uses the optional interfaces that
// the Kind implements, such as Runner.
func Any[P any](k Kind[P]) AnyKind {
	rotator, rotates := k.(Rotator[P])
	a := AnyKind{Name: k.Name(), compile: func(policy document.Policy) (compiled, error) {
		p, err := k.Compile(policy)
		if err != nil {
			return compiled{}, err
		}
		c := compiled{policy: p, answer: func(ctx context.Context, call Call) (Decision, error) { return k.Answer(ctx, p, call) }}
		if rotates {
			c.rotation = func(ctx context.Context, call Call) (Rotation, error) { return rotator.Rotation(ctx, p, call) }
		}
		return c, nil
	}}
	a.Routes = func(s *Server) map[string]http.HandlerFunc {
		routes := map[string]http.HandlerFunc{}
		if r, ok := k.(Router); ok {
			routes = r.Routes(s)
		}
		enroller, enrols := k.(Enroller)
		if enrols {
			routes["POST /"+k.Name()+"/nonce"] = func(w http.ResponseWriter, r *http.Request) { s.nonce(w, r, enroller) }
		}
		routes["POST "+hostapi.Path(k.Name())] = func(w http.ResponseWriter, r *http.Request) { s.post(w, r, enroller) }
		return routes
	}
	if r, ok := k.(Runner); ok {
		a.Run = r.Run
	}
	if d, ok := k.(Deployed); ok {
		a.InForce = d.InForce
	}
	if s, ok := k.(Sealer); ok {
		a.reseal = s.Reseal
	}
	return a
}

// Subject returns an AnyKind for a process that answers no needs. It calls check for each policy.
// If check returns an error, the policy does not come into force.
func Subject(name string, check func(document.Policy) error) AnyKind {
	return AnyKind{Name: name, compile: func(p document.Policy) (compiled, error) { return compiled{}, check(p) }}
}

// Enroller is an optional interface of a Kind. With it, the kind also accepts requests of callers
// without an SVID, which prove their identity in the request.
type Enroller interface {
	// Nonce returns a fresh nonce that can be used for one proof.
	Nonce(now time.Time) string

	// Authenticate verifies the proof in a request. The argument binding is the channel binding of
	// the connection on which the proof was made. The returned Decision becomes part of the
	// transaction of the request.
	Authenticate(ctx context.Context, c Call, binding []byte) (Decision, error)

	// Admit returns an error for a caller with an SVID if another machine has enrolled as the same
	// node since the SVID was issued. Requests of the same connection are committed under the
	// returned condition. If the condition fails, Admit is called again.
	Admit(ctx context.Context, c Call) (store.Cond, error)
}

// Router is an optional interface of a Kind that serves further HTTP endpoints. The keys of Routes
// are patterns of http.ServeMux.
type Router interface {
	Routes(s *Server) map[string]http.HandlerFunc
}

// Runner is an optional interface of a Kind that does other work besides answering requests. The
// server calls Run when it begins to serve.
type Runner interface {
	// Run does the work of the kind until ctx ends. It calls ready when it has begun. If it returns
	// an error, the server ends with that error, and the service manager restarts the process.
	Run(ctx context.Context, ready func()) error
}

// Call is a request that a Kind has to answer. The server has authenticated the caller, and the
// policy permits the request.
type Call struct {
	Caller  spiffe.ID         // node that sent the request
	SVID    *x509.Certificate // SVID of the caller; nil if the caller is authenticated otherwise
	HostKey ssh.PublicKey     // for a node that enrols: its key in the policy or an admitted key; nil otherwise
	Device  string            // fingerprint of the caller's device key; empty if the policy has its key
	Until   time.Time         // for a device that joined by a token alone: time by which it must have enrolled first
	Request hostapi.Request   // request as it was received; zero if it is not for a need
	Grant   document.Grant    // grant in the policy in force that permits Request
	Policy  document.Policy
	Serial  int64              // serial of Policy
	Revoked *trust.Revocations // revocation list in force here; nil for none
	Now     time.Time          // time of the decision

	Rotation Rotation // the rotation whose secret is the answer; zero unless the kind is a Rotator

	last func() (hostapi.Answer, error)
}

// Last returns the newest answer that the caller received for the need, even if the request was a
// different one. If there is none, Last returns the zero Answer.
func (c Call) Last() (hostapi.Answer, error) {
	if c.last == nil {
		return hostapi.Answer{}, nil
	}
	return c.last()
}

// Settings decodes the settings of a kind in a policy into v. It returns an error if the policy
// does not include the kind, or if the settings have unknown fields.
func Settings(p document.Policy, kind string, v any) error {
	raw, ok := p.Kinds[kind]
	if !ok {
		return fmt.Errorf("policy of %s: kind %q is not among those it runs", p.Host, kind)
	}
	if err := strictjson.Decode(raw, v); err != nil {
		return fmt.Errorf("policy of %s: kind %q: %w", p.Host, kind, err)
	}
	return nil
}

// Requests contains all requests for one kind of need that a policy permits, in decoded form. Get
// one of them with Of.
type Requests[R any] map[grantKey]R

// DecodeGrants decodes those grants of a policy that permit requests for one kind of need. It calls
// decode with each, and returns the results. If decode returns an error, so does DecodeGrants.
func DecodeGrants[R any](p document.Policy, kind string, decode func(g document.Grant) (R, error)) (Requests[R], error) {
	all := Requests[R]{}
	for _, g := range p.Grants {
		if g.Kind != kind {
			continue
		}
		r, err := decode(g)
		if err != nil {
			return nil, fmt.Errorf("policy of %s: need %q of %s: request: %w", p.Host, g.Need, g.Caller, err)
		}
		all[grantKey{g.Caller, g.Need}] = r
	}
	return all, nil
}

// Of returns the decoded request that a policy grants for a call.
func (r Requests[R]) Of(c Call) R { return r[grantKey{c.Caller, c.Grant.Need}] }

// Decision is the answer of a Kind to a request, with the changes to the state store that are
// committed together with it. A kind may change only keys that start with its name and a slash.
type Decision struct {
	Answer hostapi.Answer
	If     []store.Cond
	Then   []store.Op
	Detail map[string]string // for the audit row; no secrets
	Alarm  *Alarm            // alarm that the decision raises; nil for none

	// Repeated is the time until which a repeated request receives the same answer. If it is zero,
	// a repeated request receives the same answer as long as the answer is valid.
	Repeated time.Time
}
