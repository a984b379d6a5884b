package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/store"
)

// Change contains the changes to the state store that a decision requires. They are committed in
// one transaction with the audit row about the decision.
type Change struct {
	If   []store.Cond
	Then []store.Op
	// Unrecorded leaves out the audit row if the request is granted.
	Unrecorded bool

	// Refusal is set if the answer itself refuses the request. The audit row then records the
	// refusal.
	Refusal *hostapi.Error

	// Signed reports whether operators signed the answer. Such an answer is sent even if the store
	// accepts no audit row. In that case the row is only in the log of the process.
	Signed bool

	alarms []Row   // among Then, to be logged
	record *lately // that is among Then; nil for none
}

// idle reports whether a decision changes nothing and leaves no row.
func (c *Change) idle() bool { return c.Unrecorded && len(c.If) == 0 && len(c.Then) == 0 }

// Add adds the conditions and operations of a decision to the change.
func (c *Change) Add(d Decision) {
	c.If = append(c.If, d.If...)
	c.Then = append(c.Then, d.Then...)
}

// Reply decides about a request as Commit does, and then writes the answer or the refusal to w. It
// occupies a slot only while Commit decides, so a client that reads slowly does not delay other
// requests.
func (a *Request) Reply(w http.ResponseWriter, r *http.Request, refused error, decide func() (any, Change, error)) {
	answer, err := a.Commit(r.Context(), refused, decide)
	if err == nil && a.Row.Enrolment {
		peerOf(r.Context()).enrol(answer)
		conns.Vouch(r.Context())
	}
	Reply(w, answer, err)
}

// slotPatience is the longest time that a request waits for a slot. It is long enough that the
// hosts of a large cluster can be served one after the other if they all call at once.
const slotPatience = 15 * time.Second

// Commit calls decide, commits the change that decide returns together with an audit row, and
// returns the answer. If the argument refused is not nil, Commit does not call decide, but refuses
// the request with that error.
//
// Only a limited number of requests are decided at the same time, in total and for each caller. If
// the caller has reached its limit, or if the request waits too long, the error is
// hostapi.CodeBusy.
func (a *Request) Commit(ctx context.Context, refused error, decide func() (any, Change, error)) (any, error) {
	busy := func(n int, of string) *hostapi.Error {
		return hostapi.Errorf(hostapi.CodeBusy, "%d requests%s are being decided: request again later", n, of)
	}
	free, ok := a.callers.Acquire(a.Who())
	if !ok {
		return nil, busy(a.callers.Max(), " of yours").After(time.Second)
	}
	defer free()
	defer conns.HoldTurn(ctx)()
	patience := time.NewTimer(slotPatience)
	defer patience.Stop()
	select {
	case a.slots <- struct{}{}: // in the order in which they came
		defer func() { <-a.slots }()
		defer a.done()
		return a.commitDecision(ctx, func() (answer any, c Change, err error) {
			if err = refused; err == nil {
				answer, c, err = decide()
			}
			return answer, c, newerFormat(err, a.format)
		})
	case <-patience.C:
		return nil, busy(cap(a.slots), "").After(slotPatience) // sooner, hosts would add handshakes to the load
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Who returns the name under which the requests of this caller are counted: the SPIFFE ID in its
// certificate or, for a caller without one, its network.
func (a *Request) Who() string {
	if a.svid != nil {
		return a.Caller.String()
	}
	return conns.Prefix(a.Row.From).String()
}

// newerFormat returns the refusal of a request that cannot be read. If the host has a newer
// release, the refusal is transient, because this provider must then be upgraded.
func newerFormat(err error, announced string) error {
	var e *hostapi.Error
	f, unreadable := document.ParseFormat(announced)
	if unreadable != nil || !f.Newer(document.NewestFormat) || !errors.As(err, &e) || e.Kind != hostapi.Invalid {
		return err
	}
	return hostapi.Errorf(hostapi.CodeNewerFormat, "%s: the host understands formats up to %s, this provider up to %s: upgrade the provider's programs",
		e.Message, f, document.NewestFormat)
}

// commitDecision makes a decision, and commits it with its audit row before the server responds. If
// the state has changed meanwhile, it makes the decision again.
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

// storeRetry is the time that a host waits before it repeats a request that failed because the
// store did not answer. A cluster elects another leader in less time.
const storeRetry = 5 * time.Second

// internalError logs an error of this provider. The caller receives no details.
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

// StoreUnavailable returns the error to send to a host when the state store could not commit a
// decision. It contains a time to wait before the next request.
func StoreUnavailable(err error) *hostapi.Error {
	return hostapi.Errorf(hostapi.CodeStore, "%s", Unavailable(err)).After(storeRetry)
}

// Unavailable describes an error store.ErrUnavailable to the callers of a provider.
func Unavailable(err error) string {
	switch {
	case errors.Is(err, store.ErrFull):
		return "the provider's store is full, so nothing can be granted: see docs/how-to/run-providers-on-three-hosts.md#a-store-that-is-full"
	case errors.Is(err, store.ErrDamaged):
		return "the provider's state file is damaged or gone: its log says how to go on, and florctl state restore goes on from a backup"
	case errors.Is(err, store.ErrMoved):
		return "the provider's state has moved to another store"
	}
	return "the provider's store does not answer: a majority of its members is not reached from here"
}
