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
type change struct {
	If     []store.Cond
	Then   []store.Op
	alarms []Row // among Then, to be logged

	// unrecorded leaves no audit row where it is granted.
	unrecorded bool

	// refusal is what the answer amounts to, where it is one: so has its row.
	refusal *hostapi.Error

	// document is that a node reads its own documents, which are signed: where the store takes
	// no audit row, the log has it.
	document bool

	record *lately // that is among Then; nil for none
}

// encoded is an answer as JSON, which is what is recorded of it and what the caller gets.
type encoded []byte

// notModified is the answer to a node that has what it reads: the tag of that.
type notModified string

// idle reports whether a decision changes nothing and has no row: it returns nothing of worth.
func (c *change) idle() bool { return c.unrecorded && len(c.If) == 0 && len(c.Then) == 0 }

func (c *change) add(d Decision) {
	c.If = append(c.If, d.If...)
	c.Then = append(c.Then, d.Then...)
}

// commitDecision decides, and commits the decision with its audit row before the
// server responds. When the state changed in between, it decides again.
func (a *request) commitDecision(ctx context.Context, decide func() (any, change, error)) (any, error) {
	blank := a.row
	for range store.Attempts {
		a.row = blank
		a.row.Time = time.Now().UTC()
		a.Policies.pollLists()
		list, listed := a.Policies.Fresh(ctx) // before it is decided on
		answer, c, err := decide()
		var refusal *hostapi.Error
		switch {
		case err == nil && c.refusal != nil:
			a.row = a.row.Refuse(c.refusal)
		case err == nil:
			a.row.Outcome = Granted
		case errors.As(err, &refusal):
			answer, c = nil, change{}
			a.row = a.row.Refuse(refusal)
		default:
			return nil, a.internalError(ctx, err)
		}
		if refusal == nil && !c.idle() {
			switch {
			case listed == nil:
				c.If = append(c.If, list...)
			case !c.document: // which is signed, and may bring the key of a list that cannot be verified here yet
				return nil, a.internalError(ctx, listed)
			}
			if a.Policies.pollLists() {
				continue
			}
		}
		revision, err := a.Audit.commit(ctx, c, a.row, a.row.known())
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
		case errors.Is(err, store.ErrUnavailable) && c.document && refusal == nil:
			a.Logger.WarnContext(ctx, "no audit row: the store does not answer", "error", err)
			a.row.Log(ctx, a.Logger)
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
func (a *request) internalError(ctx context.Context, err error) error {
	var refusal *hostapi.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	level := slog.LevelError
	if ctx.Err() != nil { // the caller has gone
		level = slog.LevelInfo
	}
	a.Logger.Log(ctx, level, "cannot answer", "error", err, "caller", a.row.Caller, "kind", a.row.Kind, "need", a.row.Need)
	if errors.Is(err, store.ErrUnavailable) {
		return storeUnavailable(err)
	}
	return hostapi.Errorf(hostapi.CodeInternal, "the provider failed: its log has the reason")
}

func storeUnavailable(err error) *hostapi.Error {
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
func (a *request) answer(ctx context.Context, enroller Enroller) (any, change, error) {
	f := a.Policies.now.Load()
	call := Call{Caller: a.caller, SVID: a.svid, Request: a.request, Policy: f.Policy, Serial: f.serial, Revoked: f.roots.Revocations(), Now: a.row.Time}
	var c change
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
		c.add(d)
		call.Caller = a.request.Proof.Node
		if err := a.refuseRevoked(f, call.HostKey); err != nil {
			return nil, c, err
		}
	}
	if err := a.listBehind(f); err != nil {
		return nil, c, err
	}
	var err error
	if call.Grant, err = f.grant(call.Caller, a.Kind.name, a.request); err != nil {
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
	last, revision, err := a.recall(ctx, at, a.row.Key)
	if err != nil {
		return nil, c, err
	}
	call.last = func() (hostapi.Answer, error) { return a.answered(ctx, at, last) }
	if call.Rotation, err = f.rotate(ctx, a.Kind.name, call); err != nil {
		return nil, c, err
	}
	if last.same(a.row.Key, call) {
		a.row.Replayed = true
		answer, err := a.Key.Open(at, last.Answer)
		return encoded(answer), c, err
	}
	d, err := f.compiled.answer(ctx, call)
	if err != nil {
		return nil, c, err
	}
	call.Rotation.announce(d, &a.row)
	answer, err := json.Marshal(d.Answer)
	if err != nil {
		return nil, c, err
	}
	op, record, err := a.keep(at, a.row.Key, call, d, answer)
	if err != nil {
		return nil, c, err
	}
	c.record = record
	c.add(d)
	c.add(Decision{If: []store.Cond{{Key: at, Modified: revision}}, Then: []store.Op{op}})
	c.alarm(a.row, d.Alarm)
	return encoded(answer), c, nil
}

// read decides on a node that reads its documents, and has those with a tag.
func (a *request) read(ctx context.Context, k Reader, node, has string) (any, change, error) {
	if node != a.caller.Name() {
		return nil, change{}, hostapi.Errorf(hostapi.CodeNotGranted, "documents of node %q: for that node alone, requested by %s", node, a.caller)
	}
	call, err := a.reads()
	if err != nil {
		return nil, change{}, err
	}
	artifact, err := a.offer(ctx, k, call, has)
	if artifact.NotModified {
		return notModified(has), change{unrecorded: true}, err
	}
	return artifact, change{document: true}, err
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
