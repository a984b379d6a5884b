package server

import (
	"net"
	"net/netip"
	"sync"
)

// places are what all who ask share, of which each has a share.
type places[K comparable] struct {
	most int

	mu    sync.Mutex
	taken map[K]int
}

func newPlaces[K comparable](most int) *places[K] {
	return &places[K]{most: max(most, 1), taken: map[K]int{}}
}

// take takes one of k's, unless it has all that it may. free is to be called once.
func (p *places[K]) take(k K) (free func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[k] >= p.most {
		return nil, false
	}
	p.taken[k]++
	return func() { p.free(k) }, true
}

func (p *places[K]) free(k K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[k]--; p.taken[k] == 0 {
		delete(p.taken, k)
	}
}

// share is a listener that lets each network address have a share of the connections,
// and closes what is beyond that: whoever opens many and says nothing must not be all
// that there is room for.
type share struct {
	net.Listener
	from *places[netip.Prefix]
}

func (s *share) Accept() (net.Conn, error) {
	for {
		c, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		at, ok := source(c.RemoteAddr().String())
		if !ok {
			return c, nil
		}
		if free, ok := s.from.take(at); ok {
			return &shared{Conn: c, free: sync.OnceFunc(free)}, nil
		}
		c.Close()
	}
}

// source is the address of a peer, of IPv6 the network: a host has as many addresses in
// it as it likes. It is false where there are none.
func source(peer string) (netip.Prefix, bool) {
	addr, err := netip.ParseAddrPort(peer)
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

// shared frees its place with Close.
type shared struct {
	net.Conn
	free func()
}

func (c *shared) Close() error {
	defer c.free()
	return c.Conn.Close()
}
