package outbound

import (
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/things-go/go-socks5/statute"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// associate serves the request UDP ASSOCIATE (RFC 1928, section 7). The client gets a socket for
// its datagrams, which stays open as long as the client's TCP connection. Each datagram must come
// from a process that may act under the identity of the listener.
func (s *Server) associate(local *net.TCPConn, c connection) error {
	release, ok := s.associations.Acquire(c.by.UID)
	if !ok {
		s.refuse(c, &refusal{becauseTooMany, fmt.Sprintf("has %d sockets through SOCKS5", s.associations.Max())})
		return reply(local, statute.RepServerFailure)
	}
	defer release()
	relay, err := net.ListenUDP("udp", &net.UDPAddr{IP: local.LocalAddr().(*net.TCPAddr).IP})
	if err != nil {
		return reply(local, statute.RepServerFailure)
	}
	l := s.newUDPListener(relay, func(r *rules, b []byte) (destination, *refusal) { return named(r, c.as, b) })
	var receiving sync.WaitGroup
	receiving.Go(l.receive)
	defer receiving.Wait()
	defer l.Close()
	if err := replyFrom(local, statute.RepSuccess, l.addr); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, local)
	return err
}

// named returns the destination of a client's datagram: the service that the datagram names, and
// the identity in the argument as. It refuses fragmented datagrams.
func named(r *rules, as spiffe.ID, b []byte) (destination, *refusal) {
	d := destination{connKey: connKey{as: as, socks: true, serviceKey: serviceKey{protocol: document.UDP}}}
	parsed, err := statute.ParseDatagram(b)
	if err == nil && parsed.Frag != 0 {
		err = fmt.Errorf("fragment %d", parsed.Frag)
	}
	if err != nil {
		return d, &refusal{becauseBadDatagram, err.Error()}
	}
	if d.serviceKey, _, err = r.resolve(&parsed.DstAddr, document.UDP); err != nil {
		return d, &refusal{becauseBadName, err.Error()}
	}
	d.payload, d.head = parsed.Data, b[:len(b)-len(parsed.Data)]
	return d, nil
}
