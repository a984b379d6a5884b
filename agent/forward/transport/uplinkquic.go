package transport

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/trust"
)

// dialQUIC connects to the relay over QUIC. The relay opens a stream on the connection for each
// caller.
func (u *Uplink) dialQUIC() (uplinkConn, *trust.SVID, error) {
	return race(u.keeping, u, func(ctx context.Context, at netip.AddrPort, svid *trust.SVID, roots *trust.Roots) (uplinkConn, error) {
		conf := quicConfig()
		conf.MaxIncomingStreams = MaxStreams
		conf.MaxIncomingUniStreams = 2 // one stream carries wire.Leave, the other wire.Meetings
		var peer Peer
		c, from, err := u.Dial(ctx, net.UDPAddrFromAddrPort(at), tlsTo(u.Relay, wire.ALPNUplink, svid, roots, at.String(), &peer), conf)
		if err != nil {
			return uplinkConn{}, fmt.Errorf("relay %s: %w", at, explain(err, u.Relay.ID()))
		}
		u.add(c, peer)
		made := uplinkConn{c, from}
		u.tasks.Go(func() { u.acceptStreams(made) })
		return made, nil
	})
}

// uplinkConn is a connection of an uplink over QUIC.
type uplinkConn struct {
	*quic.Conn
	from *Listener // listener whose socket is used; nil for another socket
}

// local returns the address of this host on the connection. If the socket is bound to all
// addresses, local looks up the address from which the relay is reached.
func (c uplinkConn) local() netip.AddrPort {
	local := c.LocalAddr().(*net.UDPAddr).AddrPort()
	if source, err := sourceTo(c.remote()); err == nil && local.Addr().IsUnspecified() {
		local = netip.AddrPortFrom(source, local.Port())
	}
	return local
}

func (c uplinkConn) remote() netip.AddrPort { return c.RemoteAddr().(*net.UDPAddr).AddrPort() }

// hold waits until the uplink needs another connection, for one of these reasons:
//
//   - The connection ended or is silent.
//   - The relay told this host to leave.
//   - The node's SVID was renewed.
//   - The host now reaches the relay from another address.
func (u *Uplink) hold(c uplinkConn, svid *trust.SVID) {
	left := make(chan struct{})
	u.tasks.Go(func() { u.receive(c, left) })
	meets := u.tellMeets(c)
	check := time.NewTicker(uplinkChecked)
	defer check.Stop()
	source, _ := sourceTo(c.remote())
	received, at := uint64(0), time.Now()
	for {
		select {
		case <-left:
			return
		case <-c.Context().Done():
			return
		case <-u.keeping.Done():
			return
		case <-u.again:
			if now, err := sourceTo(c.remote()); err == nil && now != source {
				return
			}
		case <-check.C:
			if n := c.ConnectionStats().PacketsReceived; n != received {
				received, at = n, time.Now()
			}
			if now, _, err := u.svid(); time.Since(at) > silence || err == nil && now != svid {
				return
			}
			meets()
		}
	}
}

// receive accepts the unidirectional streams of the relay, on which it sends wire.Leave and
// wire.Meetings. When the relay sends wire.Leave, receive closes the channel left.
func (u *Uplink) receive(c uplinkConn, left chan<- struct{}) {
	for told := false; ; {
		in, err := c.AcceptUniStream(c.Context())
		if err != nil {
			return
		}
		var b [1]byte
		n, _ := in.Read(b[:])
		switch {
		case n == 1 && b[0] == wire.Leave:
			close(left)
			return
		case n == 1 && b[0] == wire.Meetings && !told:
			told = true
			u.tasks.Go(func() { u.meet(c, in) })
		}
	}
}

// meet reads the meetings that the relay announces. For each of them, it sends packets to the
// caller, so that the caller can connect directly.
func (u *Uplink) meet(c uplinkConn, in *quic.ReceiveStream) {
	for {
		m, err := wire.ReadMeeting(in)
		if err != nil {
			return
		}
		if m.Own.IsValid() {
			u.Outside.see(u.Relay.ID(), c.local(), m.Own, c.Conn)
		}
		if u.meets(c) && mayMeet(m.Peer, c.remote()) {
			c.from.Punch(c.Context(), &u.tasks, m.Peer)
		}
	}
}

// meets reports whether the relay may tell callers this host's address on the connection. Behind a
// symmetric NAT, the address would be of no use to them.
func (u *Uplink) meets(c uplinkConn) bool {
	return u.Meets && c.from != nil && u.Outside.NAT() != OtherNAT
}

// tellMeets tells the relay whether callers may learn this host's address. It returns a function
// that tells the relay again if the answer has changed.
func (u *Uplink) tellMeets(c uplinkConn) func() {
	out, err := c.OpenUniStream()
	if err != nil {
		return func() {} // an older relay does not allow the stream
	}
	told := byte(0xff)
	tell := func() {
		may := wire.MayNotMeet
		if u.meets(c) {
			may = wire.MayMeet
		}
		if may != told && write(out, []byte{may}) {
			told = may
		}
	}
	tell()
	return tell
}

func (u *Uplink) acceptStreams(c uplinkConn) {
	local := c.local()
	for {
		st, err := c.AcceptStream(c.Context())
		if err != nil {
			return
		}
		u.serve(st, net.UDPAddrFromAddrPort(local), c.RemoteAddr(), func() {})
	}
}
