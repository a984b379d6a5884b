package activation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

const (
	// notOffered is how long a host polls alone whose providers know of no watch.
	notOffered = time.Hour
	// rewatch spreads hosts whose watches were cut off together.
	rewatch = 5 * time.Second
	// rewatchMost bounds the wait of one whose watches are cut off again and again.
	rewatchMost = 15 * time.Minute
)

// watcher knows the watch of this host's documents, and the connection that it goes over.
// It watches one provider; the need for documents polls the others.
type watcher struct {
	line *fetch.Line // nil for none
	busy bool        // line is in use

	provider string    // that is watched
	revision int64     // of its last answer; zero for none
	tag      string    // of the documents in force when that was taken in
	next     time.Time // when to watch again
	answered bool      // and no failure since
	failures int       // in a row
	unknown  int       // providers in a row that offer no watch
}

// documents is the need for this host's documents, nil where it has none.
func (a *activation) documents() *need {
	i := slices.IndexFunc(a.needs, func(n *need) bool { return n.Kind == document.KindConfig })
	if i < 0 {
		return nil
	}
	return a.needs[i]
}

// watches starts a watch of the documents where none is under way, and returns when to come
// back. The need itself gets the first ones, and whatever comes after a failure.
func (a *activation) watches(now time.Time, start func(func(context.Context) outcome)) time.Time {
	w, n := &a.watcher, a.documents()
	if a.Once || a.prover.Commit != nil || n == nil || n.busy || w.busy || n.state.State != hostdir.NeedFulfilled {
		return now.Add(maxSleep)
	}
	if w.next.After(now) {
		return w.next
	}
	if a.unreported(now) {
		return a.opened.Add(reportFirst)
	}
	if !slices.Contains(n.Providers, w.provider) {
		w.watch(n.state.Provider)
	}
	if !slices.Contains(n.Providers, w.provider) {
		w.watch(n.Providers[0])
	}
	w.busy = true
	last, provider, host, from, others := w.line, w.provider, a.host, w.revision, len(n.Providers) > 1
	if host.Tag != w.tag { // others came in force meanwhile, as when a change undid itself
		from = 0
	}
	start(func(ctx context.Context) outcome {
		line, failed := host.Line(last, provider, others)
		var artifact hostapi.Artifact
		if failed == nil {
			artifact, failed = line.Watch(ctx, from)
		}
		return outcome{nil, func() { a.watched(ctx, line, artifact, failed) }}
	})
	return now.Add(maxSleep)
}

// watched notes what came of a watch. That it failed is no event: the need goes on polling,
// which reports what is wrong.
func (a *activation) watched(ctx context.Context, line *fetch.Line, artifact hostapi.Artifact, failed *fetch.Error) {
	w, n, now := &a.watcher, a.documents(), time.Now().Round(0)
	w.release(line, failed)
	w.answered = failed == nil
	switch {
	case failed == nil:
		if w.failures > 0 {
			a.witnessAgain(now)
		}
		w.failures, w.unknown, w.next = 0, 0, now
		a.received(ctx, n, w.provider, artifact)
		a.saw(w.provider, artifact)
	case ctx.Err() != nil: // cut off by this host
		w.next = now
	case failed.Code == hostapi.CodeUnknownMethod: // of an older release
		if w.unknown++; w.unknown%len(n.Providers) == 0 {
			w.next = now.Add(notOffered - rand.N(notOffered/10))
		}
		w.watch(following(n.Providers, w.provider))
	default:
		w.failures++
		w.next = now.Add(min(rewatchMost, a.Backoff.Wait(w.failures, failed.Error)) + rand.N(rewatch))
		w.watch(following(n.Providers, w.provider))
	}
}

// received puts what a watch brought in force. That nothing did is as good as a poll, where
// there is no other provider to poll.
func (a *activation) received(ctx context.Context, n *need, provider string, artifact hostapi.Artifact) {
	if e := a.accept(ctx, artifact); e != nil {
		n.state.Begin(a.observe(n))
		a.fail(n, provider, &fetch.Error{Error: e, Received: true})
		return
	}
	if artifact.Unchanged() {
		if len(n.Providers) == 1 {
			n.state.Fulfil(a.observe(n), provider, hostapi.Answer{})
			a.save(n)
		}
		return
	}
	n.state.Begin(a.observe(n))
	a.fulfil(n, provider, hostapi.Answer{})
}

// saw notes up to which revision of a provider its documents have been looked at. The next
// watch goes on from there.
func (a *activation) saw(provider string, artifact hostapi.Artifact) {
	a.watcher.watch(provider)
	a.watcher.revision, a.watcher.tag = artifact.Revision, a.store.Set().Tag()
}

// accept puts what came from the network in force. A newer revocation list is reported as soon
// as the forwarder can have it.
func (a *activation) accept(ctx context.Context, artifact hostapi.Artifact) *hostapi.Error {
	had := a.store.Set().Roots.Revocations()
	e := a.store.Accept(ctx, artifact)
	if list := a.store.Set().Roots.Revocations(); list.Newer(had) {
		a.note = fmt.Sprintf("revocation list %d taken from the network", list.Number)
		a.reporter.look = time.Now().Round(0).Add(listReport)
	}
	return e
}

// listReport is how long the forwarder has to put a revocation list in force.
const listReport = 500 * time.Millisecond

// provider is whom an attempt of a number goes to: of documents, first to those that are not
// watched, but for a proof, whose connection serves the next watch.
func (a *activation) provider(n *need, number int) string {
	i := number - 1
	if w := a.watcher; n.Kind == document.KindConfig && w.answered {
		at := slices.Index(n.Providers, w.provider)
		if a.prover.Commit == nil || at < 0 {
			at++
		}
		i += at
	}
	return n.Providers[i%len(n.Providers)]
}

// artifact gets a host's documents for its need, over the line unless that is in use.
// release, on the goroutine of Run, ends the use, when the documents are taken in.
func (a *activation) artifact(pass *fetch.Pass, attempt fetch.Attempt) func(context.Context) (hostapi.Artifact, *fetch.Error, func()) {
	w, host := &a.watcher, a.host
	if a.Once || w.busy {
		return func(ctx context.Context) (hostapi.Artifact, *fetch.Error, func()) {
			artifact, failed := pass.Artifact(ctx, attempt)
			return artifact, failed, func() {}
		}
	}
	w.busy = true
	last := w.line
	return func(ctx context.Context) (artifact hostapi.Artifact, failed *fetch.Error, release func()) {
		line, failed := host.Line(last, attempt.Provider, len(attempt.Need.Providers) > 1)
		if failed == nil {
			artifact, failed = line.Artifact(ctx)
		}
		return artifact, failed, func() {
			w.release(line, failed)
			if failed == nil {
				a.saw(attempt.Provider, artifact)
			}
		}
	}
}

// watch makes a provider the one that is watched.
func (w *watcher) watch(provider string) {
	if provider != w.provider {
		w.provider, w.revision, w.answered = provider, 0, false
	}
}

// release ends the use of the line. One that failed is not used again.
func (w *watcher) release(line *fetch.Line, failed *fetch.Error) {
	w.line, w.busy = line, false
	if failed != nil {
		w.close()
	}
}

func (w *watcher) close() {
	w.line.Close()
	w.line = nil
}

// following is the provider after another, the first after the last.
func following(providers []string, after string) string {
	return providers[(slices.Index(providers, after)+1)%len(providers)]
}
