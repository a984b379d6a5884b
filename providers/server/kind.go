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

// Kind is a kind of need. It answers requests at POST hostapi.Path(Name()). P is the type that it
// compiles a policy to. It may also implement Runner, Deployed, Rotator, Sealer, Router and
// Enroller.
type Kind[P any] interface {
	// Name returns the name of the kind in needs and policies, such as "oidc".
	Name() string

	// Compile decodes the kind's part of a policy, its settings and grants, and rejects a part that
	// the kind cannot serve. It is called once for each policy, before the policy comes into force.
	// Its result is passed to Answer.
	Compile(p document.Policy) (P, error)

	// Answer decides on a request. The caller is authenticated, the policy grants exactly this
	// request, and no answer is recorded. Answer makes no changes itself: they are in the Decision,
	// which the server commits together with the answer and the audit row before it responds.
	// Answer is called again if a condition of the Decision fails, or if the process ends before
	// the commit. For one need of a caller, it is not called again until the last Decision is
	// committed or given up.
	//
	// The error is an *hostapi.Error for a refusal. Any other error is internal: the caller
	// receives a transient error without details, and the log has the reason.
	Answer(ctx context.Context, p P, c Call) (Decision, error)
}

// AnyKind is the subject of a process: a Kind of any P, or something that answers no needs. All
// functions but Routes may be nil.
type AnyKind struct {
	Name string

	// Routes returns the endpoints at a server, by pattern.
	Routes func(s *Server) map[string]http.HandlerFunc

	// Listener returns a listener that accepts the connections of another one, and perhaps more.
	Listener func(net.Listener) net.Listener

	// Run is the method of a Runner, InForce that of a Deployed.
	Run     func(ctx context.Context, ready func()) error
	InForce func(ctx context.Context) (Version, error)

	compile func(p document.Policy) (compiled, error)
	reseal  func(ctx context.Context) error
}

// compiled is a policy that a kind compiled, with the kind's methods that use it. Methods that the
// kind does not have are nil.
type compiled struct {
	policy   any
	answer   func(ctx context.Context, c Call) (Decision, error)
	rotation func(ctx context.Context, c Call) (Rotation, error)
}

// Any returns k as an AnyKind.
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

// Subject returns an AnyKind that answers no needs, and rejects policies with check.
func Subject(name string, check func(document.Policy) error) AnyKind {
	return AnyKind{Name: name, compile: func(p document.Policy) (compiled, error) { return compiled{}, check(p) }}
}

// Enroller is implemented by a Kind that also authenticates callers without an SVID, by the Proof
// in their request.
type Enroller interface {
	// Nonce returns a fresh nonce for one proof.
	Nonce(now time.Time) string

	// Authenticate verifies a proof made on the connection with a channel binding. Its decision
	// becomes part of the transaction of the request.
	Authenticate(ctx context.Context, c Call, binding []byte) (Decision, error)

	// Admit refuses a caller with an SVID if another machine has enrolled as the same node since.
	// The returned condition protects that decision: requests of the same connection are committed
	// with it, and Admit is called again if it fails.
	Admit(ctx context.Context, c Call) (store.Cond, error)
}

// Router is implemented by a Kind with endpoints of its own.
type Router interface {
	Routes(s *Server) map[string]http.HandlerFunc
}

// Runner is implemented by a Kind with work of its own, which the server runs beside its listener.
type Runner interface {
	// Run works until ctx ends. It calls ready when it has begun. If it returns an error, the
	// server ends with it, and the service manager restarts the process.
	Run(ctx context.Context, ready func()) error
}

// Call is an authenticated request that the policy grants.
type Call struct {
	Caller  spiffe.ID         // the node
	SVID    *x509.Certificate // its own; nil where it proves itself otherwise
	HostKey ssh.PublicKey     // of a node that enrols: the key in the policy, or an admitted one; nil otherwise
	Device  string            // fingerprint of the caller's device key; empty where the policy has its key
	Until   time.Time         // for a device that joined by a token alone: when it must have enrolled first
	Request hostapi.Request   // as it came; the zero Request where it is for no need
	Grant   document.Grant    // of the policy in force, for Request
	Policy  document.Policy
	Serial  int64              // of Policy
	Revoked *trust.Revocations // the list in force here, nil for none
	Now     time.Time          // of the decision

	Rotation Rotation // the rotation whose secret is the answer; zero unless the kind is a Rotator

	last func() (hostapi.Answer, error)
}

// Last returns the answer recorded for the need, to whatever request, or the zero Answer.
func (c Call) Last() (hostapi.Answer, error) {
	if c.last == nil {
		return hostapi.Answer{}, nil
	}
	return c.last()
}

// Settings strictly decodes a policy's settings of a kind.
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

// Requests holds the decoded requests of a policy's grants.
type Requests[R any] map[grantKey]R

// DecodeGrants decodes the requests of all grants of a kind.
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

// Of returns the decoded request of a call.
func (r Requests[R]) Of(c Call) R { return r[grantKey{c.Caller, c.Grant.Need}] }

// Decision is an answer with the changes of state that belong to it. Keys of a kind start with its
// name and a slash.
type Decision struct {
	Answer hostapi.Answer
	If     []store.Cond
	Then   []store.Op
	Detail map[string]string // for the audit row; no secrets
	Alarm  *Alarm            // nil for none

	// Repeated is the time until which the same request receives this answer; zero means as long as
	// it is valid.
	Repeated time.Time
}
