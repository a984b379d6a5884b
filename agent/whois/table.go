// Package whois tells a service the SPIFFE ID of the caller of a connection that the service has
// accepted from the forwarder. The service sends the source address of the connection. Other
// processes cannot forge the answer: the forwarder records only its own connections, and it removes
// a record before it closes the connection.
//
// Queries are HTTP requests on a Unix socket beside the status socket, for example GET
// /whois?from=127.0.0.1:43210. The response is JSON. Root may ask about every service. Other
// accounts may ask about services that run as them. The kernel identifies the account
// (SO_PEERCRED).
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
	From    netip.AddrPort `json:"from"` // the caller's address as the service sees it
	To      netip.AddrPort `json:"to"`
}

// Upstream describes a connection that the forwarder has made to the local program behind a
// published service, and the caller on whose behalf it was made.
type Upstream struct {
	Caller, Service spiffe.ID
	Protocol        document.Protocol
	MayQuery        func(uid uint32) bool // reports whether an account other than root may ask about the connection
}

// Table contains the connections that the forwarder has open to local programs behind published
// services, with the callers. From it, a program learns who has called. The zero Table is empty and
// ready for use. A Table is safe for concurrent use.
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

// dialing is an attempt of the forwarder to connect to a service. The service may accept the
// connection, and ask about it, before the forwarder knows that it is connected.
type dialing struct {
	Upstream
	done chan struct{}
}

// SetUsers sets which accounts may send queries, besides root. The function reports whether any
// service runs as the account with the given uid.
func (t *Table) SetUsers(is func(uid uint32) bool) { t.users.Store(&is) }

func (t *Table) mayQuery(uid uint32) bool {
	is := t.users.Load()
	return uid == 0 || is != nil && (*is)(uid)
}

// Dial calls dial to connect to an upstream, and records the caller of the connection in the table.
// The caller of Dial must call forget before it closes the connection, because another process may
// get the same address afterwards.
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

// add records a connection in the table. The lock must be held. A connection to a Unix socket has
// no address and is not recorded.
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

// Lookup returns the callers of the connections from the address from to the address to, which may
// be zero for any address. It leaves out connections about which the account with the given uid may
// not ask. If to is zero, there may be several connections, because the kernel can use one port for
// connections to different addresses. If no connection is found, Lookup waits for those that are
// being made.
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
