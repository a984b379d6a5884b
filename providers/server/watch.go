package server

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/conns"
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

// waits is what is decided for a node that has what is in force for it: nothing yet.
type waits struct{}

// revisions is the newest of a Watcher's Changes, as nodes see it: counted from a number that
// is drawn each time they are followed anew. A store that was restored makes revisions again
// that nodes know with other contents.
type revisions struct {
	mu      sync.Mutex
	newest  int64         // zero until one is known
	changed chan struct{} // closed and replaced with each
	lost    error         // why nothing newer would be known; nil while it would
	waiting int           // nodes

	wake chan struct{} // a node waits
}

func newRevisions() *revisions {
	return &revisions{changed: make(chan struct{}), wake: make(chan struct{}, 1)}
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
	defer r.mu.Unlock()
	if err != nil && r.lost == nil {
		close(r.changed)
		r.changed = make(chan struct{})
	}
	r.lost = err
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

// now is the newest revision, and a channel that is closed when there is a newer one.
func (r *revisions) now() (int64, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.newest, r.changed
}

func (r *revisions) set(revision int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if revision != r.newest {
		r.newest = revision
		close(r.changed)
		r.changed = make(chan struct{})
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

// watch answers a node when other documents than those that it names are in force for it
// since a revision, and after some minutes that there are none. Nobody waits in a slot.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, k Watcher) {
	a := request{Server: s, row: Row{From: r.RemoteAddr, Kind: k.Name()}}
	err := a.receiveRead(r)
	has := r.Header.Get(api.HeaderHas)
	from, unreadable := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
	switch {
	case err != nil:
	case unreadable != nil || from < 0:
		err = api.Errorf(api.Invalid, api.CodeMalformed, "from %.40q: want the revision of the last answer, 0 for none", r.URL.Query().Get("from"))
	case has == "":
		err = api.Errorf(api.Invalid, api.CodeMalformed, "no %s: want the tag of the documents in force, or a request for those", api.HeaderHas)
	}
	if err == nil {
		done, ok := s.watches.Acquire(a.who())
		if !ok {
			err = api.Errorf(api.Transient, api.CodeBusy, "%d watches of yours wait already: end one", s.watches.Max()).After(time.Minute)
		} else {
			defer done()
			defer s.revisions.wait()()
		}
	}
	// What ends a wait is the node's end of the connection, not a time to send a request in.
	connection := http.NewResponseController(w)
	if err == nil {
		err = errors.Join(connection.SetReadDeadline(time.Time{}), connection.SetWriteDeadline(time.Time{}))
	}
	ends := time.NewTimer(s.Watch - rand.N(s.Watch/5+1))
	defer ends.Stop()
	for over := false; ; {
		if _, lost := s.revisions.state(); err == nil && lost != nil { // nor can a row be written
			_ = connection.SetWriteDeadline(time.Now().Add(watchAnswer))
			reply(w, nil, storeUnavailable(lost))
			return
		}
		revision, changed := s.revisions.now()
		answer, failed := a.withSlot(r.Context(), func() (any, change, error) {
			if err != nil {
				return nil, change{}, err
			}
			return a.readSince(r.Context(), k, has, from, revision)
		})
		if _, nothing := answer.(waits); !nothing || over {
			_ = connection.SetWriteDeadline(time.Now().Add(watchAnswer))
			w.Header().Set(api.HeaderRevision, strconv.FormatInt(revision, 10))
			if nothing {
				answer = notModified(has)
			}
			reply(w, answer, newerFormat(failed, r.Header.Get(florete.HeaderFormat)))
			return
		}
		from = revision
		conns.EndTurn(r.Context())
		select {
		case <-changed:
		case <-ends.C:
			over = true
		case <-s.ending:
			w.Header().Set("Connection", "close")
			over = true
		case <-r.Context().Done():
			return
		}
	}
}

// receiveRead authenticates a node that reads, and receives its proof and serial.
func (a *request) receiveRead(r *http.Request) error {
	if err := a.identify(r.Context(), r.TLS, false); err != nil {
		return err
	}
	conns.Vouch(r.Context())
	if text := r.URL.Query().Get("serial"); text != "" {
		var err error
		if a.row.Serial, err = strconv.ParseInt(text, 10, 64); err != nil {
			return api.Errorf(api.Invalid, api.CodeMalformed, "serial %q: not a number", text)
		}
	}
	if err := a.receiveList(r.Header); err != nil {
		return err
	}
	var err error
	a.request.Device, err = deviceProof(r.Header.Get(api.HeaderDevice))
	return err
}

// readSince decides on a node that has documents with a tag, and every answer until a
// revision: any other, of before or of another process, may have anything.
func (a *request) readSince(ctx context.Context, k Reader, has string, from, revision int64) (any, change, error) {
	quiet := change{unrecorded: true}
	call, err := a.reads(k)
	if err != nil {
		return nil, change{}, err
	}
	if from == revision {
		return waits{}, quiet, nil
	}
	artifact, err := a.offer(ctx, k, call, has)
	if artifact.NotModified {
		return waits{}, quiet, err
	}
	return artifact, change{}, err
}

// offer is what a node lacks that has documents with a tag, and a revocation list.
func (a *request) offer(ctx context.Context, k Reader, call Call, has string) (artifact api.Artifact, err error) {
	list, number, err := k.Revocations(ctx)
	if err != nil {
		return artifact, err
	}
	if a.list < 0 || number <= a.list {
		list = nil
	}
	artifact, err = k.Read(ctx, call, has)
	if artifact.NotModified && list != nil {
		artifact = api.Artifact{Documents: []api.SignedDocument{}}
	}
	artifact.Revocations = list
	return artifact, err
}
