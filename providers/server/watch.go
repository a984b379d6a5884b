package server

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/store"
)

// Watcher is a Reader whose nodes may wait for what comes in force next, at
// GET /<kind>/watch. Read is what is in force for a node, whatever decides that.
type Watcher interface {
	Reader

	// Changes yields the revision at which what Read returns last may have changed for some
	// node, then every later one, until ctx ends or it fails.
	Changes(ctx context.Context) iter.Seq2[int64, error]
}

const (
	// watchAnswer bounds how long a node may take to receive what it waited for.
	watchAnswer = 20 * time.Second

	// watchesOf is how many of one node wait at a time.
	watchesOf = 4
)

// notModified is the answer to a node that has what it reads: the tag of that.
type notModified string

// replyDocuments is Reply for documents, which have a tag.
func replyDocuments(w http.ResponseWriter, answer any, err error) {
	switch v := answer.(type) {
	case notModified:
		w.Header().Set(hostapi.HeaderTag, string(v))
		w.WriteHeader(http.StatusNotModified)
		return
	case hostapi.Artifact:
		if !v.Unchanged() {
			w.Header().Set(hostapi.HeaderTag, v.Tag())
		}
	}
	Reply(w, answer, err)
}

// waits is what is decided for a node that has what is in force for it: nothing yet.
type waits struct{}

// revisions is the newest of a Watcher's Changes, as nodes see it: counted from a number that
// is drawn each time they are followed anew. A store that was restored makes revisions again
// that nodes know with other contents.
type revisions struct {
	mu      sync.Mutex
	newest  int64 // zero until one is known
	lost    error // why nothing newer would be known; nil while it would
	waiting int   // nodes

	news func()        // called after a change of newest, and when lost is set
	wake chan struct{} // a node waits
}

func newRevisions(news func()) *revisions {
	return &revisions{news: news, wake: make(chan struct{}, 1)}
}

// wait counts a node that waits until done is called.
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

// lose ends all waiting with an error until it is called with none.
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
	// askMajority is how often a store that hosts share is asked while nodes wait, and patience how
	// long it may take to answer.
	askMajority      = 2 * time.Second
	majorityPatience = 5 * time.Second
)

// majority ends watches where a majority of the store's members is not reached: nodes then watch
// another provider, which may know of something newer. It sleeps while nobody waits.
func (s *Server) majority(ctx context.Context) {
	if s.List == nil || !s.List.Shared {
		return
	}
	for {
		if waiting, lost := s.revisions.state(); waiting == 0 && lost == nil {
			select {
			case <-ctx.Done():
				return
			case <-s.revisions.wake:
			}
		}
		bounded, cancel := context.WithTimeout(ctx, majorityPatience)
		err := s.Policies.Refresh(bounded)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
			s.revisions.lose(store.ErrUnavailable)
		default:
			s.revisions.lose(nil)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(askMajority):
		}
	}
}

// now returns the newest revision.
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

// follow keeps the newest revision until ctx ends.
func (s *Server) follow(ctx context.Context, k Watcher) {
	for ctx.Err() == nil {
		zero := rand.Int64N(1 << 62)
		for revision, err := range k.Changes(ctx) {
			if err != nil {
				s.Logger.Error("cannot watch what is published, trying again", "error", err)
				break
			}
			s.revisions.set(zero + revision)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// watching is a node that waits for other documents than those that it has.
type watching struct {
	*Request
	ctx   context.Context // with what is known of the connection
	kind  Watcher
	has   string // tag of its documents
	from  int64  // the revision until which nothing is new for it
	lasts time.Duration
	done  func() // it waits no more
}

// look returns the answer to a node, nil while it waits. Over is that it waits no more.
func (w *watching) look(over bool) func(http.ResponseWriter) {
	if _, lost := w.revisions.state(); lost != nil { // nor can a row be written
		return func(rw http.ResponseWriter) { Reply(rw, nil, StoreUnavailable(lost)) }
	}
	revision := w.revisions.now()
	answer, err := w.Decide(w.ctx, nil, func() (any, Change, error) {
		return w.readSince(w.ctx, w.kind, w.has, w.from, revision)
	})
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
		replyDocuments(rw, answer, err)
	}
}

// watch answers a node when other documents than those that it names are in force for it
// since a revision, and after some minutes that there are none. Nobody waits in a slot.
func (s *Server) watch(rw http.ResponseWriter, r *http.Request, k Watcher) {
	w := &watching{
		Request: s.Request(r), ctx: context.WithoutCancel(r.Context()), kind: k, has: strings.Clone(r.Header.Get(hostapi.HeaderHas)),
		lasts: s.Watch - rand.N(s.Watch/5+1), done: func() {},
	}
	err := w.receiveRead(r)
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
		free, ok := s.watches.Acquire(w.Who())
		if !ok {
			err = hostapi.Errorf(hostapi.CodeBusy, "%d watches of yours wait already: end one", s.watches.Max()).After(time.Minute)
		} else {
			waited := s.revisions.wait()
			w.done = func() { waited(); free() }
		}
	}
	if err != nil {
		revision := s.revisions.now()
		_, err = w.Decide(r.Context(), err, nil)
		rw.Header().Set(hostapi.HeaderRevision, strconv.FormatInt(revision, 10))
		Reply(rw, nil, err)
		return
	}
	round, ended := s.parking.state()
	answer := w.look(ended)
	if answer == nil {
		s.parking.park(w, rw, round)
		return
	}
	w.done()
	_ = http.NewResponseController(rw).SetWriteDeadline(time.Now().Add(watchAnswer))
	answer(rw)
}

// receiveRead authenticates a node that reads, and receives its proof and serial.
func (a *Request) receiveRead(r *http.Request) error {
	if err := a.IdentifyNode(r); err != nil {
		return err
	}
	if text := r.URL.Query().Get("serial"); text != "" {
		var err error
		if a.Row.Serial, err = strconv.ParseInt(text, 10, 64); err != nil {
			return hostapi.Errorf(hostapi.CodeMalformed, "serial %q: not a number", text)
		}
	}
	return a.ReceiveList(r.Header)
}

// read decides on a node that reads its documents, and has those with a tag.
func (a *Request) read(ctx context.Context, k Reader, node, has string) (any, Change, error) {
	if node != a.Caller.Name() {
		return nil, Change{}, hostapi.Errorf(hostapi.CodeNotGranted, "documents of node %q: for that node alone, requested by %s", node, a.Caller)
	}
	call, err := a.Granted()
	if err != nil {
		return nil, Change{}, err
	}
	artifact, err := a.offer(ctx, k, call, has)
	if artifact.NotModified {
		return notModified(has), Change{Unrecorded: true}, err
	}
	return artifact, Change{Signed: true}, err
}

// readSince decides on a node that has documents with a tag, and every answer until a
// revision: any other, of before or of another process, may have anything.
func (a *Request) readSince(ctx context.Context, k Reader, has string, from, revision int64) (any, Change, error) {
	quiet := Change{Unrecorded: true}
	call, err := a.Granted()
	if err != nil {
		return nil, Change{}, err
	}
	if from == revision {
		return waits{}, quiet, nil
	}
	artifact, err := a.offer(ctx, k, call, has)
	if artifact.NotModified {
		return waits{}, quiet, err
	}
	return artifact, Change{}, err
}

// offer is what a node lacks that has documents with a tag, and a revocation list.
func (a *Request) offer(ctx context.Context, k Reader, call Call, has string) (artifact hostapi.Artifact, err error) {
	list, number, err := k.Revocations(ctx)
	if err != nil {
		return artifact, err
	}
	if a.List < 0 || number <= a.List {
		list = nil
	}
	artifact, err = k.Read(ctx, call, has)
	if artifact.NotModified && list != nil {
		artifact = hostapi.Artifact{Documents: []hostapi.SignedDocument{}}
	}
	artifact.Revocations = list
	return artifact, err
}
