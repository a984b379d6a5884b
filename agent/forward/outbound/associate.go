package outbound

import (
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/things-go/go-socks5"
	"github.com/things-go/go-socks5/statute"

	"github.com/florete/florete"
)

// associate serves the request UDP ASSOCIATE (RFC 1928 section 7): the client has a
// socket for its datagrams for as long as its connection lives. Who sends to it must be
// a caller of the listener's identity too.
func (s *Server) associate(conn *net.TCPConn, f flow) error {
	release, ok := s.associations.Acquire(f.uid)
	if !ok {
		s.refuse(f, &refusal{"too-many", fmt.Sprintf("has %d sockets through SOCKS5", s.associations.Max())})
		return reply(conn, statute.RepServerFailure)
	}
	defer release()
	relay, err := net.ListenUDP("udp", &net.UDPAddr{IP: conn.LocalAddr().(*net.TCPAddr).IP})
	if err != nil {
		return reply(conn, statute.RepServerFailure)
	}
	l, err := s.newSocket(relay, func(r *rules, b []byte) (destination, *refusal) { return named(r, f, b) })
	if err != nil {
		return reply(conn, statute.RepServerFailure)
	}
	var receiving sync.WaitGroup
	receiving.Go(l.receive)
	defer receiving.Wait()
	defer l.Close()
	if err := socks5.SendReply(conn, statute.RepSuccess, relay.LocalAddr()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}

// named is the service that a client's datagram names. Fragments are not put together.
func named(r *rules, f flow, b []byte) (destination, *refusal) {
	d := destination{flow: flow{as: f.as, socks: true, protocol: florete.UDP}}
	parsed, err := statute.ParseDatagram(b)
	if err == nil && parsed.Frag != 0 {
		err = fmt.Errorf("fragment %d", parsed.Frag)
	}
	if err != nil {
		return d, &refusal{"bad-datagram", err.Error()}
	}
	if d.target, _, err = r.resolve(&parsed.DstAddr); err != nil {
		return d, &refusal{"bad-name", err.Error()}
	}
	d.payload, d.head = parsed.Data, b[:len(b)-len(parsed.Data)]
	return d, nil
}
