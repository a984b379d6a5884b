package fetch

import (
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
)

// Pass are attempts that begin at the same time: those with one process of a provider
// share a connection. SVID and SSH host key are read when the first of them needs it, so
// they are never older than the pass.
type Pass struct {
	host *Host

	mu    sync.Mutex
	users int // attempts, and whoever began the pass
	ways  map[process]way

	enrolled map[process]*hostapi.Calls // on whose connections this host enrolled
}

// process is one of a provider host: each kind has its own.
type process struct{ provider, kind string }

// way is how a process of a provider is reached, or why not: what authenticates this host
// cannot be read.
type way struct {
	calls  *hostapi.Calls
	failed *Error
}

// Pass begins one, with its first user.
func (h *Host) Pass() *Pass { return &Pass{host: h, users: 1, ways: map[process]way{}} }

// Join counts a user in, before another leaves.
func (p *Pass) Join() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users++
}

// Leave ends a user's part. The last one closes the connections.
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

// After begins the pass of what waited for this host to enrol, with its first user: it goes on over
// the connection on which that was done. It returns nil where there is none.
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

// way finds that of an attempt. Attempts of a kind all have the same hostKey.
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

// authenticate reads the node's SVID and SSH host key. The calls go over the connection on which
// this host enrolled, unless that is nil.
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
