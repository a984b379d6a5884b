package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/agent/forward/tcpstream"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// Server accepts connections from other forwarders to the targets on this host. Its fields must be
// set before it listens.
type Server struct {
	// Addr is the address to listen on: host:port, or :port for all addresses. The server answers
	// each peer from the address that the peer called.
	Addr string
	// Lookup returns the target with the given SNI. It returns false if the SNI is unknown.
	Lookup func(sni string) (spiffe.ID, bool)
	// Identities returns the current SVID set and trust roots.
	Identities func() *hostdir.SVIDSet
	// Rejected is called for failed handshakes, for logs and metrics.
	Rejected func(Rejection)
	// ResetKey lets a restarted server tell its old peers at once that their connections are gone
	// (RFC 9000, section 10.3). It may be nil.
	ResetKey *quic.StatelessResetKey
	// Bind replaces net.ListenUDP, so that the server can use an existing socket. It may be nil.
	Bind func(netip.AddrPort) (*net.UDPConn, error)
	// BindTCP replaces net.ListenTCP, so that the server can use an existing socket. It may be nil.
	BindTCP func(netip.AddrPort) (*net.TCPListener, error)
	// Inherited returns the files whose names begin with a prefix, from those that the previous
	// process has passed to this one. The keys of the result are the rest of the names. It may be
	// nil.
	Inherited func(prefix string) map[string]*os.File
}

// Rejection describes a failed handshake.
type Rejection struct {
	Reason string    // "unknown-name", "no-identity" or "bad-certificate"
	SNI    string    // SNI as the peer sent it
	Target spiffe.ID // target of the SNI; zero if the SNI is unknown
	Claims spiffe.ID // identity that the peer claims but has not proved; zero for none
	Remote net.Addr
	Err    error
}

// Incoming is an accepted connection from a peer that wants to reach a target on this host. If
// Uplink is true, the peer instead wants to be reached through this host, which is its relay.
type Incoming struct {
	Target    spiffe.ID
	Peer      Peer
	Transport document.Transport
	Uplink    bool // this side opens the streams, to reach the peer
	Mux       *datagram.Mux
	Usage     *usage.Conn // set by Register
	Limits    *acl.Share  // limits of the peer; set when the connection is admitted
	conn      wire.Conn
	taken     *taken    // for an uplink over TCP
	meetings  *meetings // for an uplink over QUIC
	stats     func() usage.Stats
	until     time.Time
}

// quicConn adapts a QUIC connection to the interface wire.Conn.
type quicConn struct{ *quic.Conn }

func (c quicConn) AcceptStream(ctx context.Context) (wire.Stream, error) {
	st, err := c.Conn.AcceptStream(ctx)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// handshake collects the result of a TLS handshake. It is stored in the context of the connection,
// where Accept finds it again.
type handshake struct {
	end func() // stops counting the handshake as under way
	mu  sync.Mutex
	in  Incoming
}

type handshakeKey struct{}

// Listener accepts connections from other forwarders over QUIC.
type Listener struct {
	socket     *socket
	quic       *quic.Transport
	ln         *quic.Listener
	handshakes handshakes
	muxes      sync.WaitGroup
	punches    puncher
}

// Listen binds the server's address for UDP, and begins to accept connections over QUIC. The caller
// must close the Listener.
func (s *Server) Listen() (*Listener, error) {
	addr, err := net.ResolveUDPAddr("udp", s.Addr)
	if err != nil {
		return nil, fmt.Errorf("forwarder listen %q: %w", s.Addr, err)
	}
	bind := s.Bind
	if bind == nil {
		bind = func(a netip.AddrPort) (*net.UDPConn, error) { return net.ListenUDP("udp", net.UDPAddrFromAddrPort(a)) }
	}
	bound, err := bind(addr.AddrPort())
	if err != nil {
		return nil, fmt.Errorf("forwarder listen %q: %w", s.Addr, err)
	}
	socket, err := newSocket(bound)
	if err != nil {
		bound.Close()
		return nil, fmt.Errorf("forwarder listen %q: %w", s.Addr, err)
	}
	if s.Inherited != nil {
		socket.adopt(s.Inherited(socket.passPrefix()))
	}
	l := &Listener{socket: socket}
	l.quic = &quic.Transport{
		Conn:                  socket,
		ConnectionIDGenerator: socket.own,
		StatelessResetKey:     s.ResetKey,
		TokenGeneratorKey:     tokenKey(s.ResetKey),
		VerifySourceAddress:   l.handshakes.verify,
		ConnContext: func(ctx context.Context, _ *quic.ClientInfo) (context.Context, error) {
			end, ok := l.handshakes.begin()
			if !ok {
				return nil, errors.New("too many handshakes")
			}
			context.AfterFunc(ctx, end)
			return context.WithValue(ctx, handshakeKey{}, &handshake{end: end}), nil
		},
	}
	config := quicConfig()
	config.MaxIncomingStreams = MaxStreams
	l.ln, err = l.quic.Listen(&tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{wire.ALPN, wire.ALPNUplink},
		SessionTicketsDisabled: true,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			return s.config(wire.ALPN, wire.ALPNUplink, hello)
		},
	}, config)
	if err != nil {
		socket.Close()
		return nil, err
	}
	return l, nil
}

// Addr returns the address that the listener is bound to.
func (l *Listener) Addr() net.Addr { return l.socket.LocalAddr() }

// Dial connects to another forwarder from the listener's socket, so that a NAT maps the connection
// and the listener to the same outside address.
func (l *Listener) Dial(ctx context.Context, to *net.UDPAddr, conf *tls.Config, q *quic.Config) (*quic.Conn, error) {
	return l.quic.Dial(ctx, to, conf, q)
}

// Reaches reports whether packets from the listener's socket can reach an address. They can if the
// socket is bound to all addresses of the host, or to the source address that the kernel chooses
// for that destination.
func (l *Listener) Reaches(to *net.UDPAddr) bool {
	own := l.Addr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	if own.IsUnspecified() || own.IsLoopback() && to.IP.IsLoopback() {
		return true
	}
	source, err := sourceTo(to.AddrPort())
	return err == nil && source.Unmap() == own
}

// Accept waits for the next connection with a verified peer. It returns an error when the listener
// was stopped and all its connections have been returned.
func (l *Listener) Accept() (*Incoming, error) {
	conn, err := l.ln.Accept(context.Background())
	if err != nil {
		return nil, err
	}
	h := conn.Context().Value(handshakeKey{}).(*handshake)
	h.mu.Lock()
	defer h.mu.Unlock()
	in := h.in
	in.Transport, in.conn, in.stats, in.Mux = document.OverQUIC, quicConn{conn}, usage.OfQUIC(conn), datagram.NewMux(conn, &l.muxes)
	if in.Uplink {
		in.meetings = &meetings{conn: conn}
		l.muxes.Go(in.meetings.serve)
	} else {
		l.muxes.Go(func() { answerChecks(conn, &in.Mux.Read) })
	}
	return &in, nil
}

// Offer returns open files for the next process of the forwarder, which replaces this one. With
// them, it can pass the packets of existing connections on to this process. The listening socket is
// not included. The caller must close the files.
func (l *Listener) Offer() ([]*os.File, error) { return l.socket.offer() }

// Drain stops accepting connections, because the next process of the forwarder accepts them. That
// process must have the files that Offer returned, and passes the packets of existing connections
// back to this one. Handshakes that have begun are completed here.
func (l *Listener) Drain() { l.socket.drain() }

// Stop stops accepting connections. It returns when each handshake that has begun has one of these
// results:
//
//   - It was completed, and Accept still returns the connection.
//   - It was refused.
//   - It remains unanswered, and the peer tries again until the next process runs.
func (l *Listener) Stop() { l.ln.Close() }

// Close closes the listener and its remaining connections without notifying their peers.
func (l *Listener) Close() {
	l.ln.Close()
	l.quic.Close()
	l.socket.Close()
	l.muxes.Wait()
}

// config returns the TLS configuration for an incoming connection, which also checks the peer. The
// SNI of the connection selects the target. The argument uplink is the protocol of uplinks, or
// empty where uplinks are not allowed. A peer that offers only this protocol makes an uplink.
func (s *Server) config(alpn, uplink string, hello *tls.ClientHelloInfo) (*tls.Config, error) {
	isUplink := uplink != "" && slices.Equal(hello.SupportedProtos, []string{uplink})
	if isUplink {
		alpn = uplink
	}
	set := s.Identities()
	target, known := s.Lookup(hello.ServerName)
	r := Rejection{SNI: hello.ServerName, Target: target, Remote: hello.Conn.RemoteAddr()}
	svid := set.SVID(target)
	if !known || svid == nil || !svid.Valid(time.Now()) {
		r.Reason, r.Err = "no-identity", fmt.Errorf("no valid SVID of %s", target)
		if !known {
			r.Reason, r.Err = "unknown-name", fmt.Errorf("SNI %q: not published here", hello.ServerName)
		}
		s.Rejected(r)
		return &tls.Config{MinVersion: tls.VersionTLS13}, nil // results in the alert unrecognized_name
	}
	h := hello.Context().Value(handshakeKey{}).(*handshake)
	config := tlsConfig(alpn, svid, func(cs tls.ConnectionState) error {
		peer, err := verify(set.Trust, cs, x509.ExtKeyUsageClientAuth)
		if err != nil {
			r.Reason, r.Claims, r.Err = "bad-certificate", peer.ID, err
			s.Rejected(r)
			return err
		}
		h.end()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.in = Incoming{Target: target, Peer: peer, Uplink: isUplink, until: earliest(svid, peer).Add(skew)}
		return nil
	})
	config.ClientAuth = tls.RequireAnyClientCert
	return config, nil
}

func earliest(svid *trust.SVID, peer Peer) time.Time {
	a, b := svid.Cert.Leaf.NotAfter, peer.Leaf().NotAfter
	if b.Before(a) {
		return b
	}
	return a
}

// Register adds the connection to a usage table, until remove is called. When memory is short, the
// table calls shed, which must close the connection (see usage.Table.Add).
func (in *Incoming) Register(t *usage.Table, shed func()) (remove func()) {
	row := usage.Row{Direction: telemetry.In, Target: in.Target, Caller: in.Peer.ID, Transport: in.Transport, Remote: in.RemoteAddr().String(), Allowed: MaxStreams}
	if tcp, ok := in.RemoteAddr().(*net.TCPAddr); ok {
		row.Remote = tcp.AddrPort().Addr().Unmap().String()
	}
	in.Usage, remove = t.Add(row, in.stats, &in.Mux.Read, shed)
	return remove
}

// AcceptStream waits for the next stream that the peer opens. It returns an error when the
// connection ends.
func (in *Incoming) AcceptStream() (wire.Stream, error) {
	return in.conn.AcceptStream(in.conn.Context())
}

// OpenStream opens a stream to the host that has made this connection as its uplink. It does not
// wait for the host. An uplink over TCP carries only one stream, so a second call returns an error.
func (in *Incoming) OpenStream() (wire.Stream, error) {
	switch c := in.conn.(type) {
	case quicConn:
		st, err := c.Conn.OpenStream()
		if err != nil {
			return nil, err
		}
		return st, nil
	case *tcpstream.Conn:
		in.taken.mu.Lock()
		defer in.taken.mu.Unlock()
		if in.taken.is || !c.Usable() {
			return nil, errTaken
		}
		in.taken.is = true
		st, err := c.OpenStream()
		if err != nil {
			return nil, err
		}
		return st, nil
	}
	return nil, fmt.Errorf("%T opens no streams", in.conn)
}

// taken records whether the only stream of an uplink over TCP was opened.
type taken struct {
	mu sync.Mutex
	is bool
}

// errTaken is the error of OpenStream for an uplink over TCP that has ended or whose only stream
// was already opened.
var errTaken = errors.New("the connection has a stream or has ended")

// Wait waits until the connection, which must be an uplink, has ended. It notices within a second
// that the peer has closed an uplink over TCP from which nobody reads.
func (in *Incoming) Wait() {
	c, ok := in.conn.(*tcpstream.Conn)
	if !ok {
		<-in.Context().Done()
		return
	}
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-in.Context().Done():
			return
		case <-look.C:
			in.taken.mu.Lock()
			if !in.taken.is && !c.Usable() {
				in.Close(wire.Done)
			}
			in.taken.mu.Unlock()
		}
	}
}

// Context returns a context that ends when the connection ends.
func (in *Incoming) Context() context.Context { return in.conn.Context() }

// Expired reports whether an SVID of the connection has expired. New streams must then use another
// connection.
func (in *Incoming) Expired() bool { return time.Now().After(in.until) }

// Silent reports whether the connection has received no packet for longer than a working peer would
// take to send one. It always returns false for a connection over TCP.
func (in *Incoming) Silent() bool {
	received := in.Usage.Received()
	return in.Transport == document.OverQUIC && !received.IsZero() && time.Since(received) > silence
}

// RemoteAddr returns the address of the peer.
func (in *Incoming) RemoteAddr() net.Addr { return in.conn.RemoteAddr() }

// LocalAddr returns the address of this host that the peer called.
func (in *Incoming) LocalAddr() net.Addr { return in.conn.LocalAddr() }

// Leave asks the peer to open new streams on another connection, which the next process of the
// forwarder accepts. Streams that are open or being opened continue.
func (in *Incoming) Leave() {
	switch c := in.conn.(type) {
	case quicConn:
		if st, err := c.OpenUniStream(); err == nil { // an older forwarder does not allow the stream
			_, _ = st.Write([]byte{wire.Leave})
			_ = st.Close()
		}
	case *tcpstream.Conn:
		if !in.Uplink {
			c.Leave()
			return
		}
		in.taken.mu.Lock()
		defer in.taken.mu.Unlock()
		if !in.taken.is {
			in.taken.is = true
			in.Close(wire.Stopping)
		}
	}
}

// Cut ends the connection and its streams, because of a restart (wire.Reset) or because the peer has
// lost a right (wire.Denied). It also tells the peer which streams were not served, so that the peer
// can open them again on another connection. They are the stream with the given ID, and all streams
// with higher IDs.
func (in *Incoming) Cut(code wire.Code, first quic.StreamID) {
	in.conn.CloseWithError(quic.ApplicationErrorCode(code), wire.Unserved(int64(first)))
}

// Close ends the connection and all its streams. The code tells the peer the reason.
func (in *Incoming) Close(code wire.Code) { closeWith(in.conn, code) }
