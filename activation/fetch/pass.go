package fetch

import (
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
)

// Pass sends a group of requests that begin at the same time. Requests to the same provider process
// share a connection, and all requests share the node's SVID and SSH host key, which are read once.
// A Pass is safe for concurrent use.
type Pass struct {
	host *Host

	mu    sync.Mutex
	users int // number of attempts that use the pass, plus one for its creator
	ways  map[process]way

	enrolled map[process]*hostapi.Calls // connections on which this host enrolled
}

// process identifies a process on a provider host. Each kind of need has its own process.
type process struct{ provider, kind string }

// way is a connection to a provider process, or the error if the host's credentials could not be
// read.
type way struct {
	calls  *hostapi.Calls
	failed *Error
}

// Pass returns a Pass for a new group of requests. The caller is its only user at first, and must
// call Leave when it has no more requests.
func (h *Host) Pass() *Pass { return &Pass{host: h, users: 1, ways: map[process]way{}} }

// Join adds a user, so that the connections of the Pass stay open until this user has called Leave
// too. Join must be called before the last of the other users has called Leave.
func (p *Pass) Join() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users++
}

// Leave removes a user from the pass. When the last user leaves, the connections are closed.
func (p *Pass) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users--; p.users > 0 {
		return
	}
	for _, w := range p.ways {
		if w.calls != nil {
			w.calls.Close()
		}
	}
	for _, calls := range p.enrolled {
		calls.Close()
	}
}

// keep stores a connection on which this host enrolled, for After.
func (p *Pass) keep(at process, calls *hostapi.Calls) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if former := p.enrolled[at]; former != nil {
		former.Close()
	}
	if p.enrolled == nil {
		p.enrolled = map[process]*hostapi.Calls{}
	}
	p.enrolled[at] = calls
}

// After returns a new pass for the requests that had to wait until this host was enrolled. The new
// pass takes over the connections on which the host enrolled, and its only user is the caller. If
// there are no such connections, After returns nil.
func (p *Pass) After() *Pass {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.enrolled) == 0 {
		return nil
	}
	next := p.host.Pass()
	next.enrolled, p.enrolled = p.enrolled, nil
	return next
}

// way returns the connection for an attempt, and opens it if needed. All attempts to the same
// process must use the same hostKey function.
func (p *Pass) way(a Attempt, hostKey func() (ssh.Signer, *Error)) (*hostapi.Calls, *Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := process{a.Provider, a.Need.Kind}
	w, ok := p.ways[at]
	if !ok {
		w.calls, w.failed = p.host.authenticate(a, hostKey, p.enrolled[at])
		if w.calls != nil && w.calls == p.enrolled[at] {
			delete(p.enrolled, at)
		}
		p.ways[at] = w
	}
	return w.calls, w.failed
}

// authenticate reads the node's SVID and the SSH host key, and returns a connection that uses them.
// If enrolled is not nil, it is the connection on which this host enrolled, and is continued.
func (h *Host) authenticate(a Attempt, hostKey func() (ssh.Signer, *Error), enrolled *hostapi.Calls) (*hostapi.Calls, *Error) {
	svid, failed := h.svid()
	if failed != nil {
		return nil, failed
	}
	if enrolled != nil {
		if err := enrolled.Enrolled(svid); err != nil {
			return nil, received(err)
		}
		return enrolled, nil
	}
	key, failed := hostKey()
	if failed != nil {
		return nil, failed
	}
	return h.client(a, svid, key).Calls(), nil
}
