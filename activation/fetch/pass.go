package fetch

import (
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
)

// Pass groups requests that begin at the same time, so that requests to the same process of a
// provider share a connection. The SVID and the SSH host key are read when a request first needs
// them, so they are never older than the pass.
type Pass struct {
	host *Host

	mu    sync.Mutex
	users int // number of attempts, including the creator of the pass
	ways  map[process]way

	enrolled map[process]*hostapi.Calls // connections on which this host enrolled
}

// process identifies a process of a provider host. Each kind has its own.
type process struct{ provider, kind string }

// way contains the calls to a process of a provider, or the error if this host's credentials cannot
// be read.
type way struct {
	calls  *hostapi.Calls
	failed *Error
}

// Pass returns a new Pass that has one user.
func (h *Host) Pass() *Pass { return &Pass{host: h, users: 1, ways: map[process]way{}} }

// Join adds a user of the connections. It must be called before another user leaves.
func (p *Pass) Join() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users++
}

// Leave removes a user of the connections. When the last user leaves, the connections are closed.
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

// keep keeps a connection on which this host enrolled.
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

// After returns a pass for the needs that had to wait until this host was enrolled. The new pass
// has one user and uses the connections on which the host enrolled. After returns nil if there are
// none.
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

// way returns the calls for an attempt. All attempts of a kind must have the same hostKey.
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

// authenticate reads the node's SVID and the SSH host key. The calls use the connection on which
// this host enrolled, unless enrolled is nil.
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
