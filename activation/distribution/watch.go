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
	// For notOffered a host whose providers know of no watch polls alone.
	notOffered = time.Hour
	// rewatch spreads hosts whose watches were cut off together.
	rewatch = 5 * time.Second
	// rewatchMost bounds the wait of one whose watches are cut off again and again.
	rewatchMost = 15 * time.Minute
)

// watcher knows the watch of this host's documents. It watches one provider; others are polled.
type watcher struct {
	provider string    // that is watched
	revision int64     // of its last answer; zero for none
	tag      string    // of the documents in force when that was taken in
	next     time.Time // when to watch again
	answered bool      // and no failure since
	failures int       // in a row
	unknown  int       // providers in a row that offer no watch
}

// watches starts a watch of the documents where none is under way, and returns when to come
// back. The need itself gets the first ones, and whatever comes after a failure.
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
	if host.Tag != w.tag { // others came in force meanwhile, as when a change undid itself
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

// watched notes what came of a watch. That it failed is no event: the need goes on polling,
// which reports what is wrong.
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
	case failed.Code == hostapi.CodeUnknownMethod.Name: // of an older release
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

// received puts what a watch brought in force. That nothing did is as good as a poll, where
// there is no other provider to poll.
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

// saw notes up to which revision of a provider its documents have been looked at, and the tag of those in
// force then. The next watch goes on from there.
func (w *watcher) saw(provider string, revision int64, tag string) {
	w.watch(provider)
	w.revision, w.tag = revision, tag
}

// watch makes a provider the one that is watched.
func (w *watcher) watch(provider string) {
	if provider != w.provider {
		w.provider, w.revision, w.answered = provider, 0, false
	}
}

// now has the next watch begin at once.
func (w *watcher) now() { w.next, w.failures = time.Time{}, 0 }

// following is the provider after another, the first after the last.
func following(providers []string, after string) string {
	return providers[(slices.Index(providers, after)+1)%len(providers)]
}
