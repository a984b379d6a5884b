// Package whois lets a service look up the SPIFFE ID behind the source address of a connection from
// the forwarder. The answer cannot be forged, because the forwarder records only its own
// connections, and removes each record before it closes the connection.
//
// It is JSON over HTTP on a Unix socket beside that of the status: GET /whois?from=127.0.0.1:43210.
// Root may query every service; other accounts, identified by SO_PEERCRED, may query the services
// that run as them.
package whois

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// Answer identifies the caller of a connection to a service.
type Answer struct {
	Caller  spiffe.ID      `json:"caller"`
	Service spiffe.ID      `json:"service"`
	From    netip.AddrPort `json:"from"` // as seen by the service
	To      netip.AddrPort `json:"to"`
}

// Upstream describes a connection to an upstream.
type Upstream struct {
	Caller, Service spiffe.ID
	Protocol        document.Protocol
	MayQuery        func(uid uint32) bool // accounts that may query it, besides root
}

// Table contains the forwarder's open connections to upstreams. The zero Table is empty.
type Table struct {
	users atomic.Pointer[func(uid uint32) bool]

	mu      sync.Mutex
	from    map[source][]*entry
	dialing map[*dialing]struct{}
}

type source struct {
	protocol document.Protocol
	addr     netip.AddrPort
}

type entry struct {
	Answer
	mayQuery func(uint32) bool
}

// dialing is a connection attempt. The service may accept the connection before dial returns to the
// forwarder.
type dialing struct {
	Upstream
	done chan struct{}
}

// SetUsers sets the function that reports whether an account is the user of any service.
func (t *Table) SetUsers(is func(uid uint32) bool) { t.users.Store(&is) }

func (t *Table) mayQuery(uid uint32) bool {
	is := t.users.Load()
	return uid == 0 || is != nil && (*is)(uid)
}

// Dial connects with dial and records the caller until forget is called. forget must be called
// before the connection is closed, because after that another process may have its address.
func (t *Table) Dial(u Upstream, dial func() (net.Conn, error)) (conn net.Conn, forget func(), err error) {
	d := &dialing{u, make(chan struct{})}
	t.mu.Lock()
	if t.dialing == nil {
		t.from, t.dialing = map[source][]*entry{}, map[*dialing]struct{}{}
	}
	t.dialing[d] = struct{}{}
	t.mu.Unlock()
	conn, err = dial()
	t.mu.Lock()
	defer t.mu.Unlock()
	defer close(d.done)
	delete(t.dialing, d)
	if err != nil {
		return nil, nil, err
	}
	return conn, t.add(u, conn), nil
}

// add records a connection. The caller holds the lock. A Unix socket has no address.
func (t *Table) add(u Upstream, conn net.Conn) (forget func()) {
	from, errFrom := netip.ParseAddrPort(conn.LocalAddr().String())
	to, errTo := netip.ParseAddrPort(conn.RemoteAddr().String())
	if errFrom != nil || errTo != nil {
		return func() {}
	}
	key := source{u.Protocol, from}
	e := &entry{Answer{u.Caller, u.Service, from, to}, u.MayQuery}
	t.from[key] = append(t.from[key], e)
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		var rest []*entry
		for _, other := range t.from[key] {
			if other != e {
				rest = append(rest, other)
			}
		}
		if t.from[key] = rest; rest == nil {
			delete(t.from, key)
		}
	})
}

// Lookup returns the connections from an address that uid may query, to one address, or to any if
// to is zero. There may be several, because the kernel assigns the same port to connections to
// different addresses.
func (t *Table) Lookup(ctx context.Context, uid uint32, p document.Protocol, from, to netip.AddrPort) []Answer {
	found, coming := t.lookup(uid, source{p, from}, to)
	for _, d := range coming {
		if len(found) > 0 {
			break
		}
		select {
		case <-d.done:
			found, _ = t.lookup(uid, source{p, from}, to)
		case <-ctx.Done():
			return nil
		}
	}
	return found
}

func (t *Table) lookup(uid uint32, key source, to netip.AddrPort) (found []Answer, coming []*dialing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.from[key] {
		if (uid == 0 || e.mayQuery(uid)) && (!to.IsValid() || to == e.To) {
			found = append(found, e.Answer)
		}
	}
	for d := range t.dialing {
		if d.Protocol == key.protocol && (uid == 0 || d.MayQuery(uid)) {
			coming = append(coming, d)
		}
	}
	return found, coming
}
