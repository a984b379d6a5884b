package distribution

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

const (
	// notOffered is the time for which a host whose providers do not support watches only polls.
	notOffered = time.Hour
	// rewatch spreads the reconnections of hosts whose watches were cut off together.
	rewatch = 5 * time.Second
	// rewatchMost bounds the wait after repeated failures of a watch.
	rewatchMost = 15 * time.Minute
)

// watcher is the state of the watch of this host's documents. It watches one provider and polls the
// others.
type watcher struct {
	provider string    // watched provider
	revision int64     // revision of its last answer; zero for none
	tag      string    // tag of the documents in force after that answer
	next     time.Time // time of the next watch
	answered bool      // the last watch was answered
	failures int       // consecutive failures
	unknown  int       // consecutive providers without support for watches
}

// watches starts a watch of the documents if none is in progress. It returns the time at which to
// call it again. The first documents, and those after a failure, are fetched by polling.
func (f *Follower) watches(now time.Time, start needstate.Start) time.Time {
	w, n := &f.watcher, f.need
	if f.table.Once || f.prover.Commit != nil || n == nil || n.Busy || f.line.used || n.State.State != hostdir.NeedFulfilled {
		return time.Time{}
	}
	if w.next.After(now) {
		return w.next
	}
	if f.unreported(now) {
		return f.opened.Add(reportFirst)
	}
	if !slices.Contains(n.Providers, w.provider) {
		w.watch(n.State.Provider)
	}
	if !slices.Contains(n.Providers, w.provider) {
		w.watch(n.Providers[0])
	}
	last, _ := f.line.take()
	provider, host, from, others := w.provider, f.table.Host, w.revision, len(n.Providers) > 1
	if host.Tag != w.tag { // other documents are in force since, for example after a rollback
		from = 0
	}
	start(func(ctx context.Context) func() {
		line, failed := host.Line(last, provider, others)
		var artifact hostapi.Artifact
		if failed == nil {
			artifact, failed = line.Watch(ctx, from)
		}
		return func() { f.watched(ctx, line, artifact, failed) }
	})
	return time.Time{}
}

// watched records the result of a watch. A failure is not an event, because the host goes on
// polling, which reports errors.
func (f *Follower) watched(ctx context.Context, line *fetch.Line, artifact hostapi.Artifact, failed *fetch.Error) {
	w, n, now := &f.watcher, f.need, time.Now().Round(0)
	f.line.release(line, failed)
	w.answered = failed == nil
	switch {
	case failed == nil:
		if w.failures > 0 {
			f.Reconnected()
		}
		w.failures, w.unknown, w.next = 0, 0, now
		f.received(ctx, w.provider, artifact)
		w.saw(w.provider, artifact.Revision, f.Store.Set().Tag())
	case ctx.Err() != nil: // cut off by this host
		w.next = now
	case failed.Code == hostapi.CodeUnknownMethod.Name: // a provider of an older release
		if w.unknown++; w.unknown%len(n.Providers) == 0 {
			w.next = now.Add(notOffered - rand.N(notOffered/10))
		}
		w.watch(following(n.Providers, w.provider))
	default:
		w.failures++
		w.next = now.Add(min(rewatchMost, f.table.Backoff.Wait(w.failures, failed.Error)) + rand.N(rewatch))
		w.watch(following(n.Providers, w.provider))
	}
}

// received puts the result of a watch in force. A result without a change is equivalent to a poll
// if there is no other provider to poll.
func (f *Follower) received(ctx context.Context, provider string, artifact hostapi.Artifact) {
	n := f.need
	e := f.accept(ctx, artifact)
	switch {
	case e != nil:
		n.CountAttempt()
		n.Fail(provider, &fetch.Error{Error: e, Received: true})
	case !artifact.Unchanged():
		n.CountAttempt()
		f.fulfil(provider)
	case len(n.Providers) == 1:
		n.Confirm(provider, hostapi.Answer{})
	}
}

// saw records the revision up to which the documents of a provider have been received, and the tag
// of the documents in force. The next watch continues from there.
func (w *watcher) saw(provider string, revision int64, tag string) {
	w.watch(provider)
	w.revision, w.tag = revision, tag
}

// watch selects the provider to watch.
func (w *watcher) watch(provider string) {
	if provider != w.provider {
		w.provider, w.revision, w.answered = provider, 0, false
	}
}

// now makes the next watch begin at once.
func (w *watcher) now() { w.next, w.failures = time.Time{}, 0 }

// following returns the provider after another, in a circle.
func following(providers []string, after string) string {
	return providers[(slices.Index(providers, after)+1)%len(providers)]
}
