package server

import (
	"net"
	"net/netip"
	"sync"
)

// share is a listener that lets each network address have a share of the connections,
// and closes what is beyond that: whoever opens many and says nothing must not be all
// that there is room for.
type share struct {
	net.Listener
	most int

	mu   sync.Mutex
	from map[netip.Prefix]int
}

func newShare(l net.Listener, most int) *share {
	return &share{Listener: l, most: most, from: map[netip.Prefix]int{}}
}

func (s *share) Accept() (net.Conn, error) {
	for {
		c, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		at, ok := source(c)
		if !ok {
			return c, nil
		}
		if s.count(at, 1) {
			return &shared{Conn: c, free: sync.OnceFunc(func() { s.count(at, -1) })}, nil
		}
		c.Close()
	}
}

// source is the address that a connection is from, of IPv6 the network: a host has as
// many addresses in it as it likes. It is false where there are none.
func source(c net.Conn) (netip.Prefix, bool) {
	addr, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Prefix{}, false
	}
	ip := addr.Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	p, err := ip.Prefix(bits)
	return p, err == nil
}

// count adds to the connections of a source, unless there would be too many.
func (s *share) count(at netip.Prefix, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from[at]+n > s.most {
		return false
	}
	if s.from[at] += n; s.from[at] == 0 {
		delete(s.from, at)
	}
	return true
}

// shared frees its place with Close.
type shared struct {
	net.Conn
	free func()
}

func (c *shared) Close() error {
	defer c.free()
	return c.Conn.Close()
}
