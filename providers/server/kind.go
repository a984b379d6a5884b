package server

import (
	"context"
	"crypto/x509"
	"fmt"
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

// Kind is a kind of need, or what else a process serves: perhaps an Answerer or Reader, an
// Enroller, Runner or Deployed. P is what it compiles a policy to.
type Kind[P any] interface {
	// Name is the kind as in needs and policies, such as "oidc".
	Name() string

	// Compile decodes the kind's part of a policy, its settings and grants, and
	// rejects what the kind cannot serve. It is called once for every policy, before that
	// comes into force. What it returns comes with each Call.
	Compile(p document.Policy) (P, error)
}

// Answerer is a Kind that answers requests, at POST hostapi.Path(Name()).
//
// When Answer is called the caller is authenticated, the policy grants exactly what is
// requested, and no answer is recorded. Answer changes nothing by itself: what must be
// remembered is in the Decision, which the server commits together with the answer and the
// audit row before it responds. Answer is called again when a condition of the Decision
// fails, and when a crash came before the commit. For one need of a caller it is not called
// again until the last Decision is committed, or given up.
//
// The error is an *hostapi.Error for a refusal. Any other is ours: the caller receives transient
// and internal, and the log has the reason.
type Answerer[P any] interface {
	Kind[P]
	Answer(ctx context.Context, p P, c Call) (Decision, error)
}

// AnyKind is a Kind whatever it compiles policies to, so that processes of all kinds are alike.
type AnyKind struct {
	kind    any // for what it is besides
	name    string
	answers bool
	compile func(p document.Policy) (compiled, error)
}

// compiled is a policy as a kind compiled it, and the kind's methods that use it; nil for those
// that the kind does not have.
type compiled struct {
	policy   any
	answer   func(ctx context.Context, c Call) (Decision, error)
	rotation func(ctx context.Context, c Call) (Rotation, error)
}

// Any returns k as an AnyKind.
func Any[P any](k Answerer[P]) AnyKind {
	rotator, rotates := k.(Rotator[P])
	return AnyKind{kind: k, name: k.Name(), answers: true, compile: func(policy document.Policy) (compiled, error) {
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
}

// Documents returns k, which answers no requests for needs, as an AnyKind.
func Documents[P any](k Kind[P]) AnyKind {
	return AnyKind{kind: k, name: k.Name(), compile: func(policy document.Policy) (compiled, error) {
		p, err := k.Compile(policy)
		return compiled{policy: p}, err
	}}
}

// Reader is a Kind whose documents a node reads, at GET /<kind>/artifact/<node>.
type Reader interface {
	// Revocations is the revocation list that all nodes get, and its number; nil for none.
	Revocations(ctx context.Context) (*trust.SignedRevocations, int64, error)

	// Read is what is in force for the node: that this is NotModified where its tag is has.
	Read(ctx context.Context, c Call, has string) (hostapi.Artifact, error)
}

// Receiver is a Kind that keeps what nodes report, at POST /<kind>/report. A node that the
// policy grants a need of the kind may report, and only of itself. Reports leave no audit rows
// but for what people did on the node.
type Receiver interface {
	// Receive is called again when another report came in between.
	Receive(c Call, last, report []byte) (Received, error)
}

// Received is what becomes of a report.
type Received struct {
	Keep   []byte // in the place of the node's last report; nil for nothing
	Answer any

	// Acts are what people did on the node, with code, message and detail: each has an audit row.
	Acts []Row
}

// Enroller is an Answerer that also knows callers without an SVID, by the Proof in
// their request.
type Enroller interface {
	// Nonce is a fresh nonce for one proof.
	Nonce(now time.Time) string

	// Authenticate checks a proof made on the connection with a channel
	// binding. What it decides goes into the transaction of whatever comes of
	// the request.
	Authenticate(ctx context.Context, c Call, binding []byte) (Decision, error)

	// Admit refuses a caller with an SVID whose enrolment has passed to another
	// machine. The condition is what it was found on: requests of the same connection
	// are committed with it, and call Admit again once it fails.
	Admit(ctx context.Context, c Call) (store.Cond, error)
}

// Public is a Kind with something that everybody may read, at GET /<kind>/<path>, without a
// certificate. It leaves no audit rows, and decides nothing.
type Public interface {
	Open() (path string, h http.Handler)
}

// Runner is a Kind with work of its own, which the server runs beside its listener.
type Runner interface {
	// Run works until ctx ends, and calls ready when it has begun to. When it fails, the
	// server ends with its error: the service manager starts the process again.
	Run(ctx context.Context, ready func()) error
}

// Call is one authenticated request that the policy grants.
type Call struct {
	Caller  spiffe.ID         // the node
	SVID    *x509.Certificate // its own; nil where it proves itself otherwise
	HostKey ssh.PublicKey     // of a node that enrols: the policy's, or admitted; nil for none
	Device  string            // fingerprint of the caller's device key; empty where the policy has its key
	Until   time.Time         // for a device that joined by a token alone: when it must have enrolled first
	Request hostapi.Request   // as it came; the zero Request for a Reader
	Grant   document.Grant    // of the policy in force, for Request
	Policy  document.Policy
	Serial  int64              // of Policy
	Revoked *trust.Revocations // the list in force here, nil for none
	Now     time.Time          // of the decision

	Rotation Rotation // whose secret to answer with; zero but for a Rotator

	last func() (hostapi.Answer, error)
}

// Last is the answer that is recorded for the need, whatever was requested then: the zero
// Answer where there is none.
func (c Call) Last() (hostapi.Answer, error) {
	if c.last == nil {
		return hostapi.Answer{}, nil
	}
	return c.last()
}

// Settings decodes a policy's settings of a kind, strictly.
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

// Requests are what the grants of a policy are for, decoded by a kind.
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

// Of is what a call requests.
func (r Requests[R]) Of(c Call) R { return r[grantKey{c.Caller, c.Grant.Need}] }

// Decision is an answer and the changes of state that it rests on. Keys of a kind
// start with its name and a slash.
type Decision struct {
	Answer hostapi.Answer
	If     []store.Cond
	Then   []store.Op
	Detail map[string]string // for the audit row; no secrets
	Alarm  *Alarm            // nil for none

	// Repeated is until when the same request has this answer; zero for as long as that is valid.
	Repeated time.Time
}
