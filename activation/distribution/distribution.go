// Package distribution fetches a host's documents from their providers, and sends reports about the
// state of the host to these providers. It uses a single long-lived connection (fetch.Line) for the
// following requests, one after the other:
//
//	poll      fetches the first documents, and tries again after a failure
//	watch     waits at one provider for newer documents or a newer revocation list
//	prove     connects anew under new documents; an answer confirms them (confirm)
//	report    sends the state of the host after every change and every few minutes
//
// The documents are themselves a need in the manifest. Their state, such as the last failure and
// the time of the next poll, is therefore kept like that of any other need (needstate.Need).
// Accepted documents are in force at once (documents.Store). The owner of the Follower calls
// Changed to learn of new documents, and Open to use them.
//
// A Follower must be used by the goroutine that owns the needs. It runs slow operations in
// goroutines of their own (needstate.Start).
package distribution

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/trust"
)

// lookAgain is the minimum time between two checks whether the documents in force are outdated.
const lookAgain = time.Second

// Follower fetches a host's documents from its providers and sends the host's reports to them.
// Except for the work that it passes to a needstate.Start, it must be used only by the goroutine
// that owns the table of needs.
type Follower struct {
	Store   *documents.Store
	Timeout time.Duration // time within which a provider must answer under new documents

	// Report returns the host's report. If it is nil, no reports are sent.
	Report func(context.Context) hostreport.Report

	// Reconnected is called when a provider answers a watch again after failures. The provider may
	// have been replaced in the meantime, and may have lost its state.
	Reconnected func()

	set    documents.Set    // documents passed to Open
	table  *needstate.Table // needs of these documents
	need   *needstate.Need  // need for the documents; nil if they do not come over the network
	opened time.Time        // time of Open
	note   string           // where newer documents came from; empty if there are none

	line     line
	watcher  watcher
	prover   prover
	reporter reporter

	fresh time.Time     // time of the last check by CheckFreshness
	stale time.Duration // see Stale

	withheld *trust.Withheld // see Withheld
}

// Open tells the Follower which documents are now in force, and gives it the table of their needs.
// The argument need is the need for the documents themselves, or nil if the manifest has none. If
// the revocation list is newer than at the last call, needs that were denied because this host was
// revoked become due.
func (f *Follower) Open(set documents.Set, table *needstate.Table, need *needstate.Need) {
	if f.table != nil && set.Roots.Revocations().Newer(f.set.Roots.Revocations()) {
		for _, n := range table.Needs {
			n.Reinstate(time.Now().Round(0))
		}
	}
	f.set, f.table, f.need, f.note = set, table, need, ""
	f.opened, f.fresh = time.Now().Round(0), time.Time{}
	if f.seek(f.opened); f.prover.Change != nil {
		f.line.close() // only a connection made under these documents is a proof
	}
}

// Close closes the connection to the provider of documents.
func (f *Follower) Close() { f.line.close() }

// Changed reports whether newer documents or a newer revocation list have come into force since the
// last call of Open. The note says, for the log, where they came from.
func (f *Follower) Changed() (note string, changed bool) {
	is := f.Store.Set()
	changed = is.Generation != f.set.Generation || is.Roots.Revocations().Newer(f.set.Roots.Revocations())
	return cmp.Or(f.note, "taken from the network"), changed
}

// Refresh loads documents that another process has put in force, such as flor sync or the process
// that rolls a change back.
func (f *Follower) Refresh() {
	note, err := f.Store.Refresh()
	if err != nil {
		f.disk(err)
	}
	if note != "" {
		f.note = "put in force by flor sync, or gone back"
	}
}

// Accept puts documents in force that did not come from a provider. The argument from describes
// their origin for the log. Accept returns an error if the documents are refused (see
// documents.Store.Accept).
func (f *Follower) Accept(ctx context.Context, a hostapi.Artifact, from string) *hostapi.Error {
	e := f.accept(ctx, a)
	if _, changed := f.Changed(); changed {
		f.note = from
	}
	return e
}

// accept puts documents and a revocation list from the network in force. If the list is new, the
// host sends a report as soon as the forwarder may have loaded the list.
func (f *Follower) accept(ctx context.Context, artifact hostapi.Artifact) *hostapi.Error {
	had := f.Store.Set().Roots.Revocations()
	e := f.Store.Accept(ctx, artifact)
	f.reportGrants()
	if list := f.Store.Set().Roots.Revocations(); list.Newer(had) {
		f.note = fmt.Sprintf("revocation list %d taken from the network", list.Number)
		f.reporter.lookIn(listReport)
	}
	return e
}

// reportGrants reports an event for each access grant that was refused.
func (f *Follower) reportGrants() {
	for _, refused := range f.Store.RefusedGrants() {
		if f.table != nil {
			f.table.Report(event.Event{Event: event.Grant, Message: refused.Error()})
		}
	}
}

// Stale returns the time for which no provider has answered a request for documents, as of the last
// call of CheckFreshness. It returns zero while that time is too short for an alarm.
func (f *Follower) Stale() time.Duration { return f.stale }

// Withheld returns a document in force that is older than the revocation list allows, or nil if
// there is none. The result is that of the last call of CheckFreshness. See trust.Withheld.
func (f *Follower) Withheld() *trust.Withheld { return f.withheld }

// CheckFreshness raises an alarm if no provider has answered a request for documents for too long.
// It raises another alarm if the documents in force are older than the revocation list allows. An
// alarm ends when a later call finds that its cause is gone.
func (f *Follower) CheckFreshness() {
	now := time.Now().Round(0)
	if now.Sub(f.fresh).Abs() < lookAgain {
		return
	}
	err := f.Store.EndGrants()
	f.reportGrants()
	if err != nil {
		f.disk(err)
	}
	stale, withheld := f.stale, f.withheld
	f.fresh, f.stale = now, f.table.Host.Layout.Stale(f.set.Manifest, now)
	f.withheld = f.set.Withheld(now)
	begins := func(is, was bool, e event.Event) (changed bool) {
		if is && !was {
			f.table.Report(e)
		}
		return is != was
	}
	changed := begins(f.stale > 0, stale > 0, event.Event{Event: event.Stale, Message: event.StaleText(f.stale)})
	if begins(f.withheld != nil, withheld != nil, event.Event{Event: event.Withheld, Message: f.withheld.String()}) || changed {
		f.table.Changed()
	}
}

// Rewind moves all planned times to an earlier time after the wall clock was set back by the given
// amount, so that nothing is delayed.
func (f *Follower) Rewind(by time.Duration) {
	needstate.Rewind(by, &f.reporter.look, &f.reporter.due, &f.watcher.next,
		&f.prover.next, &f.prover.ends, &f.prover.last, &f.prover.seen, &f.opened)
}

// Begin starts the work that is due: asking a provider for the newest documents, waiting for newer
// ones, and sending a report. Requests for the newest documents share the connections of the given
// fetch.Pass, so Begin must be called after the other needs have begun their requests. It returns
// the time at which it must be called again, or the zero time if nothing is planned.
func (f *Follower) Begin(now time.Time, pass *fetch.Pass, start needstate.Start) time.Time {
	var poll time.Time
	if f.need != nil && !f.need.Busy {
		poll = f.need.Request(now, f.pollDue, func(number int) { start(f.poll(pass, number)) })
	}
	return needstate.First(poll, f.reports(now, start), f.watches(now, start))
}

// pollDue returns the time of the next poll. While new documents wait for their proof, this is the
// time of the next proof. Otherwise it is the given time.
func (f *Follower) pollDue(due time.Time, ok bool) (time.Time, bool) {
	if f.prover.Change != nil {
		return f.prover.next, true
	}
	return due, ok
}

// poll requests the documents from a provider. It uses the line, or the connections of the pass if
// the line is in use.
func (f *Follower) poll(pass *fetch.Pass, number int) func(context.Context) func() {
	n, host, proof := f.need, f.table.Host, f.prover.proof
	attempt := fetch.Attempt{Need: n.Need, Provider: f.provider(number)}
	last, taken := (*fetch.Line)(nil), false
	if !f.table.Once {
		last, taken = f.line.take()
	}
	pass.Join()
	return func(ctx context.Context) func() {
		defer pass.Leave()
		var artifact hostapi.Artifact
		var line *fetch.Line
		var failed *fetch.Error
		if !taken {
			artifact, failed = pass.Artifact(ctx, attempt)
		} else if line, failed = host.Line(last, attempt.Provider, len(n.Providers) > 1); failed == nil {
			artifact, failed = line.Artifact(ctx)
		}
		return func() {
			n.End()
			refused := failed
			if failed == nil {
				if proof.Change != nil {
					f.proved(proof, attempt.Provider)
				}
				if e := f.accept(ctx, artifact); e != nil {
					refused = &fetch.Error{Error: e, Received: true}
				}
			}
			if taken {
				f.line.release(line, failed)
				if failed == nil {
					f.watcher.saw(attempt.Provider, artifact.Revision, f.Store.Set().Tag())
				}
			}
			switch {
			case refused == nil:
				f.fulfil(attempt.Provider)
			case ctx.Err() != nil:
				n.CutOff()
			default:
				n.Fail(attempt.Provider, refused)
				f.unproved(n, refused)
			}
		}
	}
}

// provider selects the provider for an attempt. If a provider is being watched, the first attempt
// goes to the provider after it in the list. A proof begins with the watched provider itself,
// because its connection is then used for the next watch.
func (f *Follower) provider(number int) string {
	i, providers := number-1, f.need.Providers
	if w := f.watcher; w.answered {
		at := slices.Index(providers, w.provider)
		if f.prover.Change == nil || at < 0 {
			at++
		}
		i += at
	}
	return providers[i%len(providers)]
}

func (f *Follower) fulfil(provider string) {
	f.need.Fulfil(provider, hostapi.Answer{})
	f.fresh = time.Time{}
}

func (f *Follower) disk(err error) { f.table.Disk("documents", err) }

// line holds the connection to a provider of documents while no request uses it.
type line struct {
	free *fetch.Line // connection that can be used; nil if there is none
	used bool        // a request uses the connection, or opens one
}

// take gives the caller exclusive use of the line until release is called. The result is nil if no
// connection is open. If another request is using the line, take returns false.
func (l *line) take() (*fetch.Line, bool) {
	if l.used {
		return nil, false
	}
	l.used = true
	return l.free, true
}

// release ends the use of a connection that the caller obtained with take. A connection on which a
// request failed is closed.
func (l *line) release(line *fetch.Line, failed *fetch.Error) {
	l.free, l.used = line, false
	if failed != nil {
		l.close()
	}
}

func (l *line) close() {
	l.free.Close()
	l.free = nil
}
