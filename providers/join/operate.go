package join

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// These are the audit codes of operators' acts.
const (
	CodeToken       = "token-create"
	CodeTokenRevoke = "token-revoke"
	CodeApprove     = "join-approve"
	CodeReject      = "join-reject"
)

// MaxLifetime is the longest lifetime of a token. MaxUses is the largest number of uses of a token.
// MaxTokens is the largest number of recorded tokens.
const (
	MaxLifetime = 7 * 24 * time.Hour
	MaxUses     = 1000
	MaxTokens   = 1000
)

// kept is the time for which the record of a token is kept after the token has ended.
const kept = 30 * 24 * time.Hour

// Operator carries out what an operator wants to do with join tokens and join requests. The field
// Row identifies the operator, and is stored as an audit row in the transaction of each change. If
// the state does not permit an operation, the error wraps ErrAct.
type Operator struct {
	Store  store.Store
	Policy document.Policy
	Row    server.Row // audit row of the act, which names the caller
}

// ErrAct is the error of an act that the state of the token or request does not permit.
var ErrAct = errors.New("not possible")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrAct, fmt.Sprintf(format, args...))
}

func (o Operator) node(host string) (spiffe.ID, error) {
	return spiffe.NewID(o.Policy.TrustDomain, spiffe.KindNode, "", host)
}

// commit makes the changes of a decision. It writes the audit row of the act in the same
// transaction.
func (o *Operator) commit(ctx context.Context, d server.Decision, code, message string) error {
	o.Row.Outcome, o.Row.Code, o.Row.Message, o.Row.Detail = server.Granted, code, message, d.Detail
	_, err := o.Store.Commit(ctx, store.Txn{If: d.If, Then: append(d.Then, o.Row.Op())})
	return err
}

// all returns the decoded values of all keys with a prefix.
func all[V any](ctx context.Context, s store.Store, prefix string) (values []V, err error) {
	entries, _, err := s.List(ctx, prefix)
	values = []V{}
	for _, e := range entries {
		var v V
		if err := json.Unmarshal(e.Value, &v); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Key, err)
		}
		values = append(values, v)
	}
	return values, err
}

// Tokens returns the recorded join tokens, sorted by ID.
func Tokens(ctx context.Context, s store.Store) ([]Token, error) {
	return all[Token](ctx, s, TokenPrefix)
}

// Requests returns the last join request of each host, sorted by the name of the host. If the
// revocation list names the node or the device of an approved request, that request has the state
// revoked.
func Requests(ctx context.Context, s store.Store, p document.Policy, list *trust.Revocations) ([]Request, error) {
	requests, err := all[Request](ctx, s, RequestPrefix)
	for i, r := range requests {
		if node, err := (Operator{Policy: p}).node(r.Host); err == nil {
			requests[i].State = r.Standing(node, list)
		}
	}
	return requests, err
}

// Create records a new join token, and returns the record. The record contains a hash of the
// token's public key, and no secrets. Create sets the fields By, Created, Left and Revoked.
// Recording the same token again changes nothing.
func (o *Operator) Create(ctx context.Context, t Token) (Token, error) {
	now := o.Row.Time
	t.By, t.Created, t.Left, t.Revoked = o.Row.Caller, unixtime.Of(now), t.Uses, unixtime.Time{}
	if err := o.check(t); err != nil {
		return t, err
	}
	tokens, err := Tokens(ctx, o.Store)
	if err != nil {
		return t, err
	}
	if i := slices.IndexFunc(tokens, func(old Token) bool { return old.ID == t.ID }); i >= 0 {
		old := tokens[i]
		if old.Hosts != t.Hosts || old.Uses != t.Uses || !old.Until.Equal(t.Until.Time) {
			return t, refuse("join token %s is on record for %q, %d uses, until %s: make another", t.ID[:16], old.Hosts, old.Uses, old.Until.UTC().Format(time.RFC3339))
		}
		return old, nil // the same token is recorded already
	}
	var d server.Decision
	for _, old := range tokens {
		if now.After(old.Until.Time.Add(kept)) && len(d.Then) < 50 {
			d.Then = append(d.Then, store.Delete(TokenPrefix+old.ID))
		}
	}
	if len(tokens)-len(d.Then) >= MaxTokens {
		return t, refuse("there are %d join tokens: wait until some are over", len(tokens))
	}
	if err := put(&d, TokenPrefix+t.ID, 0, t); err != nil {
		return t, err
	}
	d.Detail = map[string]string{"token": t.ID, "hosts": t.Hosts, "uses": fmt.Sprint(t.Uses), "until": t.Until.UTC().Format(time.RFC3339)}
	how := "an operator approves"
	if t.Grant != nil {
		how = "approved at once"
	}
	return t, o.commit(ctx, d, CodeToken, fmt.Sprintf("join token %s for %q, %d uses, %s", t.ID[:16], t.Hosts, t.Uses, how))
}

func (o *Operator) check(t Token) error {
	lifetime := t.Until.Sub(o.Row.Time)
	_, bad := path.Match(t.Hosts, "")
	id, _ := hex.DecodeString(t.ID)
	switch {
	case len(id) != 32 || strings.ToLower(t.ID) != t.ID:
		return refuse("token %.80q: want the SHA-256 of its public key", t.ID)
	case bad != nil || t.Hosts == "" || len(t.Hosts) > 63:
		return refuse("hosts %.80q: want a name, or a pattern such as lab-*", t.Hosts)
	case t.Uses < 1 || t.Uses > MaxUses:
		return refuse("%d uses, want 1 to %d", t.Uses, MaxUses)
	case lifetime <= 0 || lifetime > MaxLifetime:
		return refuse("ends at %s, want a time within %s", t.Until.UTC().Format(time.RFC3339), MaxLifetime)
	case t.Grant == nil:
		return nil
	}
	node, err := o.node(t.Hosts)
	if err != nil || t.Uses != 1 {
		return refuse("%d uses for %q: a token that approves by itself is for one host, once", t.Uses, t.Hosts)
	}
	g, err := t.Grant.Verify(o.Policy.Cluster, node, o.Policy.Trust.Signers())
	if err != nil {
		return refuse("%v", err)
	}
	if hostapi.TokenID(g.Token) != t.ID || g.Until.After(t.Until.Time) {
		return refuse("the join grant is of another token, or for longer")
	}
	return nil
}

// Revoke makes the join token with the given ID invalid, and returns it. Devices that joined with
// the token are not affected. Revoking a token again changes nothing.
func (o *Operator) Revoke(ctx context.Context, id string) (t Token, err error) {
	modified, err := store.Load(ctx, o.Store, TokenPrefix+id, &t)
	if err != nil {
		return t, err
	}
	if modified == 0 {
		return t, refuse("no join token %.64q is on record", id)
	}
	if !t.Revoked.IsZero() {
		return t, nil
	}
	t.Revoked = unixtime.Of(o.Row.Time)
	var d server.Decision
	if err := put(&d, TokenPrefix+id, modified, t); err != nil {
		return t, err
	}
	d.Detail = map[string]string{"token": id}
	return t, o.commit(ctx, d, CodeTokenRevoke, fmt.Sprintf("join token %s for %q is revoked", id[:16], t.Hosts))
}

// Decide approves or rejects the request of a device to become the named host. To approve it, pass
// an admission of the device, which one of the cluster's signing keys has signed. To reject it,
// pass nil. Repeating a decision changes nothing.
func (o *Operator) Decide(ctx context.Context, host string, admission *trust.SignedAdmission) (r Request, err error) {
	at := RequestPrefix + host
	modified, err := store.Load(ctx, o.Store, at, &r)
	if err != nil {
		return r, err
	}
	node, wrong := o.node(host)
	if modified == 0 || wrong != nil {
		return r, refuse("no device asks to become host %.64q: florctl join list", host)
	}
	want, code, did := hostapi.JoinRejected, CodeReject, "rejected"
	if admission != nil {
		want, code, did = hostapi.JoinApproved, CodeApprove, "approved"
		a, _, err := admission.Verify(o.Policy.Cluster, node, o.Policy.Trust.Signers())
		if err != nil || admission.Grant != nil {
			return r, refuse("%v: want an admission that a key of trust.signingKeys signed", err)
		}
		if a.Key != r.Device {
			return r, refuse("the admission is of another device than %s, which requests to be %s now: florctl join list", r.Fingerprint(), host)
		}
	}
	switch {
	case r.State == want && (admission == nil || r.Admission != nil):
		return r, nil
	case r.State == want: // approved by a token, which may have ended since
	case r.State != hostapi.JoinPending && want == hostapi.JoinRejected:
		return r, refuse("device %s is %s: florctl revoke --host-key %[1]s", r.Fingerprint(), r.State)
	case r.State != hostapi.JoinPending:
		return r, refuse("device %s is %s: it takes another token", r.Fingerprint(), r.State)
	}
	r.State, r.Decided, r.By, r.Admission = want, unixtime.Of(o.Row.Time), o.Row.Caller, admission
	var d server.Decision
	if err := put(&d, at, modified, r); err != nil {
		return r, err
	}
	d.Detail = map[string]string{"host": host, "device": r.Fingerprint(), "token": r.Token}
	return r, o.commit(ctx, d, code, fmt.Sprintf("device %s is %s as %s", r.Fingerprint(), did, node))
}
