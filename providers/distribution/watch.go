package distribution

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

const (
	// watchAnswer is the longest time for a node to receive the answer to its watch.
	watchAnswer = 20 * time.Second

	// watchesOf is the largest number of simultaneous watches of one node.
	watchesOf = 4
)

// waits is the decision that a node must wait for an answer, because it has the newest documents.
type waits struct{}

// revisions holds the newest revision of the archive for waiting nodes. Revisions are counted from
// a random number, which is drawn when the process begins to follow the archive. A restored store
// uses revisions again with other contents, and nodes may know these.
type revisions struct {
	mu      sync.Mutex
	newest  int64 // newest revision; zero until it is known
	lost    error // reason why newer revisions are unknown; nil while they are known
	waiting int   // number of waiting nodes

	news func()        // called after a change of newest, and when lost is set
	wake chan struct{} // receives a value when a node begins to wait
}

func newRevisions(news func()) *revisions {
	return &revisions{news: news, wake: make(chan struct{}, 1)}
}

// wait counts a node as waiting until the returned function is called.
func (r *revisions) wait() (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting++
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return func() {
		r.mu.Lock()
		r.waiting--
		r.mu.Unlock()
	}
}

// lose ends all watches with an error. New watches fail as well, until lose is called with nil.
func (r *revisions) lose(err error) {
	r.mu.Lock()
	news := err != nil && r.lost == nil
	r.lost = err
	r.mu.Unlock()
	if news {
		r.news()
	}
}

func (r *revisions) state() (waiting int, lost error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting, r.lost
}

const (
	// askMajority is the interval at which the provider checks a shared store's majority while
	// nodes wait. The constant patience is the longest time for an answer.
	askMajority      = 2 * time.Second
	majorityPatience = 5 * time.Second
)

// majority ends all watches if a majority of the store's members cannot be reached. The nodes then
// watch another provider, which may have newer documents. majority is idle while no node waits.
func (d *Distribution) majority(ctx context.Context) {
	if list := d.server.List; list == nil || !list.Shared {
		return
	}
	for {
		if waiting, lost := d.revisions.state(); waiting == 0 && lost == nil {
			select {
			case <-ctx.Done():
				return
			case <-d.revisions.wake:
			}
		}
		bounded, cancel := context.WithTimeout(ctx, majorityPatience)
		err := d.server.Policies.Refresh(bounded)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
			d.revisions.lose(store.ErrUnavailable)
		default:
			d.revisions.lose(nil)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(askMajority):
		}
	}
}

// now returns the newest revision. It returns zero if the revision is not known.
func (r *revisions) now() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.newest
}

func (r *revisions) set(revision int64) {
	r.mu.Lock()
	news := revision != r.newest
	r.newest = revision
	r.mu.Unlock()
	if news {
		r.news()
	}
}

// follow updates the newest revision from the archive until ctx ends.
func (d *Distribution) follow(ctx context.Context) {
	for ctx.Err() == nil {
		zero := rand.Int64N(1 << 62)
		for revision, err := range d.near.Changes(ctx) {
			if err != nil {
				d.server.Logger.Error("cannot watch what is published, trying again", "error", err)
				break
			}
			d.revisions.set(zero + revision)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// watching is a node that waits until documents other than those it has are in force.
type watching struct {
	*server.Request
	*Distribution
	ctx context.Context // context of the request and its connection
	has string          // tag of the node's documents
	// received is the tag of the access grants that the node received last.
	received string
	from     int64 // revision up to which the node has seen changes
	lasts    time.Duration
	done     func() // called when the node stops waiting
}

// look returns a function that answers the node. It returns nil if the node must keep waiting. If
// over is true, the wait has ended, and the node gets an answer in any case.
func (w *watching) look(over bool) func(http.ResponseWriter) {
	if _, lost := w.revisions.state(); lost != nil { // no audit row can be written either
		return func(rw http.ResponseWriter) { server.Reply(rw, nil, server.StoreUnavailable(lost)) }
	}
	revision := w.revisions.now()
	answer, err := w.Commit(w.ctx, nil, func() (any, server.Change, error) { return w.readSince(revision) })
	_, nothing := answer.(waits)
	if nothing && !over {
		w.from = revision
		return nil
	}
	if nothing {
		answer = notModified(w.has)
	}
	return func(rw http.ResponseWriter) {
		rw.Header().Set(hostapi.HeaderRevision, strconv.FormatInt(revision, 10))
		reply(rw, answer, err)
	}
}

// watch answers a node when other documents than those that the node has are in force, or after
// some minutes without a change. A waiting node does not occupy a request slot.
func (d *Distribution) watch(rw http.ResponseWriter, r *http.Request) {
	w := &watching{
		Request: d.server.Request(r), Distribution: d, ctx: context.WithoutCancel(r.Context()), has: strings.Clone(r.Header.Get(hostapi.HeaderHas)),
		received: strings.Clone(r.Header.Get(hostapi.HeaderGrants)),
		lasts:    d.Watch - rand.N(d.Watch/5+1), done: func() {},
	}
	err := identify(w.Request, r)
	from, unreadable := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
	switch {
	case err != nil:
	case unreadable != nil || from < 0:
		err = hostapi.Errorf(hostapi.CodeMalformed, "from %.40q: want the revision of the last answer, 0 for none", r.URL.Query().Get("from"))
	case w.has == "":
		err = hostapi.Errorf(hostapi.CodeMalformed, "no %s: want the tag of the documents in force, or a request for those", hostapi.HeaderHas)
	}
	w.from = from
	if err == nil {
		free, ok := d.watches.Acquire(w.Who())
		if !ok {
			err = hostapi.Errorf(hostapi.CodeBusy, "%d watches of yours wait already: end one", d.watches.Max()).After(time.Minute)
		} else {
			waited := d.revisions.wait()
			w.done = func() { waited(); free() }
		}
	}
	if err != nil {
		revision := d.revisions.now()
		_, err = w.Commit(r.Context(), err, nil)
		rw.Header().Set(hostapi.HeaderRevision, strconv.FormatInt(revision, 10))
		server.Reply(rw, nil, err)
		return
	}
	round, ended := d.parking.state()
	answer := w.look(ended)
	if answer == nil {
		d.parking.park(w, rw, round)
		return
	}
	w.done()
	_ = http.NewResponseController(rw).SetWriteDeadline(time.Now().Add(watchAnswer))
	answer(rw)
}

// readSince decides about the request of a node that has seen the revision w.from. If that is the
// current revision, the documents have not changed. Otherwise readSince compares the documents,
// because the node's revision may be old or come from another process.
func (w *watching) readSince(revision int64) (any, server.Change, error) {
	quiet := server.Change{Unrecorded: true}
	if w.from == revision {
		_, err := w.Granted()
		return waits{}, quiet, err
	}
	artifact, err := w.offer(w.ctx, w.Request, w.has, w.received)
	if artifact.NotModified {
		return waits{}, quiet, err
	}
	return artifact, server.Change{}, err
}
