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
	// notOffered is the time for which a host only polls after none of its providers supported watches.
	notOffered = time.Hour
	// rewatch is the time over which hosts spread their next watches. Otherwise all hosts whose
	// watches were cut off together would return together.
	rewatch = 5 * time.Second
	// rewatchMost limits the wait before the next watch after repeated failures.
	rewatchMost = 15 * time.Minute
)

// watcher is the state of a host's watch for newer documents. One provider is watched at a time.
// The others are polled.
type watcher struct {
	provider string    // watched provider
	revision int64     // revision in the provider's last answer; zero if there is none
	tag      string    // tag of the documents in force after that answer
	next     time.Time // time of the next watch
	answered bool      // the last watch was answered
	failures int       // number of consecutive failed watches
	unknown  int       // number of consecutive providers that do not support watches
}

// watches starts a watch for newer documents if none is running. It returns the time at which it
// must be called again. A watch is preceded by a successful poll: the first documents, and the
// first ones after a failure, are fetched by polling.
func (f *Follower) watches(now time.Time, start needstate.Start) time.Time {
	w, n := &f.watcher, f.need
	if f.table.Once || f.prover.Change != nil || n == nil || n.Busy || f.line.used || n.State.State != hostdir.NeedFulfilled {
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

// watched records the result of a watch. It reports no event if the watch failed, because the host
// then polls, and a failed poll reports one.
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

// received puts the documents that a watch returned in force. If there is no other provider to
// poll, the end of a watch without newer documents counts as a successful poll.
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

// saw records that all documents of a provider up to a revision were received, and the tag of the
// documents in force. The next watch continues from that revision.
func (w *watcher) saw(provider string, revision int64, tag string) {
	w.watch(provider)
	w.revision, w.tag = revision, tag
}

// watch sets the provider to watch.
func (w *watcher) watch(provider string) {
	if provider != w.provider {
		w.provider, w.revision, w.answered = provider, 0, false
	}
}

// now makes the next watch due at once.
func (w *watcher) now() { w.next, w.failures = time.Time{}, 0 }

// following returns the provider after the given one in the list. The last provider is followed by
// the first.
func following(providers []string, after string) string {
	return providers[(slices.Index(providers, after)+1)%len(providers)]
}
