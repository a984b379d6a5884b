package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/store"
)

// change is what a decision does to the state.
type Change struct {
	If   []store.Cond
	Then []store.Op
	// Unrecorded leaves no audit row where the request is granted.
	Unrecorded bool

	// Refusal is what the answer amounts to, where it is a refusal: the audit row has it.
	Refusal *hostapi.Error

	// Signed tells that the answer is signed by operators, so that it is given although the store
	// takes no audit row. The log has the row then.
	Signed bool

	alarms []Row   // among Then, to be logged
	record *lately // that is among Then; nil for none
}

// encoded is an answer as JSON, which is what is recorded of it and what the caller gets.
type encoded []byte

// idle reports whether a decision changes nothing and has no row: it returns nothing of worth.
func (c *Change) idle() bool { return c.Unrecorded && len(c.If) == 0 && len(c.Then) == 0 }

// Add adds what a decision changes.
func (c *Change) Add(d Decision) {
	c.If = append(c.If, d.If...)
	c.Then = append(c.Then, d.Then...)
}

// commitDecision decides, and commits the decision with its audit row before the
// server responds. When the state changed in between, it decides again.
func (a *Request) commitDecision(ctx context.Context, decide func() (any, Change, error)) (any, error) {
	blank := a.Row
	for range store.Attempts {
		a.Row = blank
		a.Row.Time = time.Now().UTC()
		a.Policies.pollLists()
		list, listed := a.Policies.Fresh(ctx) // before it is decided on
		answer, c, err := decide()
		var refusal *hostapi.Error
		switch {
		case err == nil && c.Refusal != nil:
			a.Row = a.Row.Refuse(c.Refusal)
		case err == nil:
			a.Row.Outcome = Granted
		case errors.As(err, &refusal):
			answer, c = nil, Change{}
			a.Row = a.Row.Refuse(refusal)
		default:
			return nil, a.internalError(ctx, err)
		}
		if refusal == nil && !c.idle() {
			switch {
			case listed == nil:
				c.If = append(c.If, list...)
			case !c.Signed: // which is signed, and may bring the key of a list that cannot be verified here yet
				return nil, a.internalError(ctx, listed)
			}
			if a.Policies.pollLists() {
				continue
			}
		}
		revision, err := a.Audit.commit(ctx, c, a.Row, a.Row.known())
		a.committed(c.record, revision, err)
		switch {
		case errors.Is(err, store.ErrConflict):
			if a.peer != nil {
				a.peer.readmit()
			}
			if err := a.Policies.Refresh(ctx); err != nil {
				return nil, a.internalError(ctx, err)
			}
			continue
		case errors.Is(err, store.ErrUnavailable) && c.Signed && refusal == nil:
			a.Logger.WarnContext(ctx, "no audit row: the store does not answer", "error", err)
			a.Row.Log(ctx, a.Logger)
		case err != nil:
			return nil, a.internalError(ctx, err)
		}
		for _, row := range c.alarms {
			row.Log(ctx, a.Logger)
		}
		if refusal != nil {
			return nil, refusal
		}
		return answer, nil
	}
	return nil, hostapi.Errorf(hostapi.CodeBusy, "the state changed %d times while this was decided: request again", store.Attempts).After(time.Second)
}

// storeRetry is when a host requests again what the store did not answer: it elects another
// leader in less.
const storeRetry = 5 * time.Second

// internalError logs what went wrong here; the caller learns only that it did.
func (a *Request) internalError(ctx context.Context, err error) error {
	var refusal *hostapi.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	level := slog.LevelError
	if ctx.Err() != nil { // the caller has gone
		level = slog.LevelInfo
	}
	a.Logger.Log(ctx, level, "cannot answer", "error", err, "caller", a.Row.Caller, "kind", a.Row.Kind, "need", a.Row.Need)
	if errors.Is(err, store.ErrUnavailable) {
		return StoreUnavailable(err)
	}
	return hostapi.Errorf(hostapi.CodeInternal, "the provider failed: its log has the reason")
}

// StoreUnavailable returns the refusal of what the store does not take.
func StoreUnavailable(err error) *hostapi.Error {
	return hostapi.Errorf(hostapi.CodeStore, "%s", Unavailable(err)).After(storeRetry)
}

// Unavailable describes a store.ErrUnavailable to those who call a provider.
func Unavailable(err error) string {
	switch {
	case errors.Is(err, store.ErrFull):
		return "the provider's store is full, so nothing can be granted: see \"A store that is full\" of modules/README.md"
	case errors.Is(err, store.ErrDamaged):
		return "the provider's state file is damaged or gone: its log says how to go on, and florctl state restore goes on from a backup"
	case errors.Is(err, store.ErrMoved):
		return "the provider's state has moved to another store"
	}
	return "the provider's store does not answer: a majority of its members is not reached from here"
}

// answer decides on a request for a need.
func (a *Request) answer(ctx context.Context, enroller Enroller) (any, Change, error) {
	f := a.Policies.now.Load()
	call := a.call(f, a.Caller)
	call.SVID, call.Request = a.svid, a.request
	var c Change
	if a.request.Proof == nil {
		if err := a.verifyDevice(f); err != nil {
			return nil, c, f.policyBehind(err, a.request.Serial)
		}
		call.Device = a.device
	} else {
		var err error
		if call.HostKey, call.Until, err = f.enrolKey(a.request.Proof); err != nil {
			return nil, c, f.policyBehind(err, a.request.Serial)
		}
		if call.HostKey != nil && a.request.Proof.Admission != nil && f.hostKeys[a.request.Proof.Node] == nil {
			a.device = ssh.FingerprintSHA256(call.HostKey)
		}
		call.Device = a.device
		d, err := enroller.Authenticate(ctx, call, a.binding)
		if err != nil {
			return nil, c, f.policyBehind(err, a.request.Serial)
		}
		c.Add(d)
		call.Caller = a.request.Proof.Node
		if err := a.refuseRevoked(f, call.HostKey); err != nil {
			return nil, c, err
		}
	}
	if err := a.listBehind(f); err != nil {
		return nil, c, err
	}
	var err error
	if call.Grant, err = f.grant(call.Caller, a.Kind.Name, a.request); err != nil {
		return nil, c, f.policyBehind(err, a.request.Serial)
	}
	if enroller != nil && call.SVID != nil {
		on, err := a.peer.admit(func() (store.Cond, error) { return enroller.Admit(ctx, call) })
		if err != nil {
			return nil, c, err
		}
		c.If = append(c.If, on)
	}
	at := place(call.Caller, a.request.Need)
	if err := a.take(ctx, at); err != nil {
		return nil, c, err
	}
	last, revision, err := a.recall(ctx, at, a.Row.Key)
	if err != nil {
		return nil, c, err
	}
	call.last = func() (hostapi.Answer, error) { return a.answered(ctx, at, last) }
	if call.Rotation, err = f.rotate(ctx, a.Kind.Name, call); err != nil {
		return nil, c, err
	}
	if last.same(a.Row.Key, call) {
		a.Row.Replayed = true
		answer, err := a.Key.Open(at, last.Answer)
		return encoded(answer), c, err
	}
	d, err := f.compiled.answer(ctx, call)
	if err != nil {
		return nil, c, err
	}
	call.Rotation.announce(d, &a.Row)
	answer, err := json.Marshal(d.Answer)
	if err != nil {
		return nil, c, err
	}
	op, record, err := a.keep(at, a.Row.Key, call, d, answer)
	if err != nil {
		return nil, c, err
	}
	c.record = record
	c.Add(d)
	c.Add(Decision{If: []store.Cond{{Key: at, Modified: revision}}, Then: []store.Op{op}})
	c.alarm(a.Row, d.Alarm)
	return encoded(answer), c, nil
}

// grant finds the grant of a caller's request.
func (f *compiledPolicy) grant(caller spiffe.ID, kind string, r hostapi.Request) (document.Grant, error) {
	at := grantKey{caller, r.Need}
	g, ok := f.grants[at]
	if !ok {
		return g, hostapi.Errorf(hostapi.CodeNotGranted, "need %q of kind %q: the policy does not grant it to %s", r.Need, kind, caller)
	}
	want, err := hostapi.Asked(r.Body)
	if err != nil {
		return g, hostapi.Errorf(hostapi.CodeMalformed, "need %q: body: %v", r.Need, err)
	}
	if string(want) != f.requests[at] {
		return g, hostapi.Errorf(hostapi.CodeMismatch, "need %q: requested %s, the policy grants %s to %s", r.Need, want, f.requests[at], caller)
	}
	switch {
	case r.Generation < g.Generation:
		return g, hostapi.Errorf(hostapi.CodeRotated, "need %q: generation %d requested, the policy grants generation %d to %s: deploy the host's newest manifest",
			r.Need, r.Generation, g.Generation, caller)
	case r.Generation > g.Generation:
		return g, hostapi.Errorf(hostapi.CodeMismatch, "need %q: generation %d requested, the policy grants generation %d to %s", r.Need, r.Generation, g.Generation, caller)
	}
	return g, nil
}

// policyBehind is a refusal, or transient when the host has a newer deployment than this
// provider, which may well grant what is refused here.
func (f *compiledPolicy) policyBehind(err error, serial int64) error {
	var e *hostapi.Error
	if !errors.As(err, &e) || e.Kind != hostapi.Denied || e.Code == hostapi.CodeReplayed.Name || e.Code == hostapi.CodeRevoked.Name || serial <= f.serial {
		return err
	}
	return hostapi.Errorf(hostapi.CodePolicyBehind, "%s: the host's manifest has serial %d, the policy here %d: deploy this provider",
		e.Message, serial, f.serial)
}
