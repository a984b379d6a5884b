package inbound

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// listenAt is an address and transport on which peers are accepted.
type listenAt struct {
	transport document.Transport
	addr      string
}

func listenAts(f document.Forwarder) (all []listenAt) {
	for _, t := range []document.Transport{document.OverQUIC, document.OverTCP} {
		if f.Transport != document.AnyTransport && f.Transport != t {
			continue
		}
		for _, addr := range f.Listen {
			all = append(all, listenAt{t, addr})
		}
	}
	return all
}

// listener is a transport.Listener or a transport.TCPListener.
type listener interface {
	Accept() (*transport.Incoming, error)
	Offer() ([]*os.File, error)
	Drain()
	Stop()
	Close()
}

// listen opens and closes listeners so that they match at. A listener that fails does not delay the
// others.
func (s *Server) listen(at []listenAt) (errs []error) {
	s.close(func(l listenAt) bool { return !slices.Contains(at, l) }, 0)
	if s.Sockets != nil {
		errs = s.retain(at)
	}
	for _, l := range at {
		if s.running[l] != nil {
			continue
		}
		ln, err := s.bind(l)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.running[l] = s.start(ln)
	}
	return errs
}

// close closes listeners concurrently.
func (s *Server) close(which func(listenAt) bool, grace time.Duration) {
	var closing sync.WaitGroup
	for l, r := range s.running {
		if which(l) {
			closing.Go(func() { r.close(grace) })
			delete(s.running, l)
		}
	}
	closing.Wait()
}

func (s *Server) bind(l listenAt) (listener, error) {
	t := transport.Server{
		Addr:       l.addr,
		Lookup:     func(sni string) (spiffe.ID, bool) { return s.rules.Load().registry.Lookup(sni) },
		Identities: s.Identities,
		Rejected:   s.rejected,
		ResetKey:   s.ResetKey,
	}
	if s.Sockets != nil {
		t.Bind, t.BindTCP, t.Inherited = s.Sockets.ListenQUIC, s.Sockets.ListenTLS, s.Sockets.Others
	}
	if l.transport == document.OverTCP {
		return t.ListenTCP()
	}
	return t.Listen()
}

// retain releases the sockets of all other addresses.
func (s *Server) retain(all []listenAt) (errs []error) {
	var quic, tcp []netip.AddrPort
	for _, l := range all {
		at, err := net.ResolveUDPAddr("udp", l.addr)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("forwarder listen %q: %w", l.addr, err))
		case l.transport == document.OverTCP:
			tcp = append(tcp, at.AddrPort())
		default:
			quic = append(quic, at.AddrPort())
		}
	}
	s.Sockets.RetainForPeers(quic, tcp)
	return errs
}
