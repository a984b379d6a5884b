package server

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/store"
)

// Kind is the kind of need that a process answers. What it does beyond having
// a name it shows by being an Answerer, Reader, Enroller or Runner.
type Kind interface {
	// Name is the kind as in needs and policies, such as "oidc".
	Name() string

	// Check refuses a policy that this kind cannot serve. It is called with
	// every policy before that comes into force.
	Check(p florete.Policy) error
}

// Answerer is a Kind that answers requests, at POST api.Paths[Name()].
//
// By the time Answer is called the caller is authenticated, the policy grants
// exactly what is asked, and the request was not answered before. Answer changes
// nothing by itself: what must be remembered is in the Decision, which the server
// commits together with the answer and the audit row, before the caller hears of
// it. Answer is called again when a condition of the Decision fails, and when a
// crash came before the commit.
//
// The error is an *api.Error for a refusal; any other is an accident of ours,
// told to the caller as transient and unavailable.
type Answerer interface {
	Kind
	Answer(ctx context.Context, c Call) (Decision, error)
}

// Reader is a Kind whose documents a node reads, at GET /<kind>/artifact/<node>.
type Reader interface {
	Kind
	Read(ctx context.Context, c Call) (api.Artifact, error)
}

// Enroller is an Answerer that also knows callers without an SVID, by the Proof in
// their request.
type Enroller interface {
	Answerer

	// Nonce is a fresh nonce for one proof.
	Nonce(now time.Time) string

	// Authenticate checks a proof made on the connection with a channel
	// binding. What it decides goes into the transaction of whatever comes of
	// the request.
	Authenticate(ctx context.Context, c Call, binding []byte) (Decision, error)

	// Admit refuses a caller with an SVID whose enrolment has passed to another
	// machine.
	Admit(ctx context.Context, c Call) error
}

// Runner is a Kind with work of its own, which the server runs beside its listener.
type Runner interface {
	Kind

	// Run works until ctx ends, and calls ready when it has begun to. When it fails, the
	// server ends with its error: the service manager starts the process again.
	Run(ctx context.Context, ready func()) error
}

// Call is one authenticated request that the policy grants.
type Call struct {
	Caller  florete.ID        // the node that asks
	SVID    *x509.Certificate // its own; nil where it proves itself otherwise
	HostKey ssh.PublicKey     // that the policy has for a node that enrols; nil for none
	Request api.Request       // as it came; the zero Request for a Reader
	Grant   florete.Grant     // what Request asks for, from the policy in force
	Policy  florete.Policy
	Now     time.Time // of the decision
}

// Settings decodes the policy's settings of the call's kind.
func (c Call) Settings(v any) error { return Settings(c.Policy, c.Grant.Kind, v) }

// Settings decodes a policy's settings of a kind, strictly.
func Settings(p florete.Policy, kind string, v any) error {
	raw, ok := p.Kinds[kind]
	if !ok {
		return fmt.Errorf("policy of %s: kind %q is not among those it runs", p.Host, kind)
	}
	if err := florete.Decode(raw, v); err != nil {
		return fmt.Errorf("policy of %s: kind %q: %w", p.Host, kind, err)
	}
	return nil
}

// Decision is an answer and the changes of state that it rests on. Keys of a kind
// start with its name and a slash.
type Decision struct {
	Answer api.Answer
	If     []store.Cond
	Then   []store.Op
	Detail map[string]string // for the audit row; no secrets
	Alarm  *Alarm            // nil for none
}
