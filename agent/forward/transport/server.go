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

// Server accepts connections for the services that this host publishes.
type Server struct {
	// Addr is the address to listen on: host:port, or :port for all addresses. Each peer is
	// answered from the address that it called.
	Addr string
	// Lookup returns the target for an SNI.
	Lookup func(sni string) (spiffe.ID, bool)
	// Identities returns the SVID set in force.
	Identities func() *hostdir.SVIDSet
	// Rejected is called for failed handshakes.
	Rejected func(Rejection)
	// ResetKey lets a restarted server tell its old peers at once that their connections are gone
	// (RFC 9000, section 10.3). It may be nil.
	ResetKey *quic.StatelessResetKey
	// Bind replaces net.ListenUDP, to use an existing socket; may be nil.
	Bind func(netip.AddrPort) (*net.UDPConn, error)
	// BindTCP replaces net.ListenTCP; may be nil.
	BindTCP func(netip.AddrPort) (*net.TCPListener, error)
	// Inherited returns files of the previous process whose names begin with prefix, by the rest of
	// their names; may be nil.
	Inherited func(prefix string) map[string]*os.File
}

// Rejection is a handshake that failed.
type Rejection struct {
	Reason string    // "unknown-name", "no-identity" or "bad-certificate"
	SNI    string    // as sent
	Target spiffe.ID // zero if the SNI is unknown
	Claims spiffe.ID // claimed identity of the peer, which is not proven; zero if there is none
	Remote net.Addr
	Err    error
}

// Incoming is an accepted connection: Peer wants to reach Target.
type Incoming struct {
	Target    spiffe.ID
	Peer      Peer
	Transport document.Transport
	Uplink    bool // the peer is reached over the connection: this side opens the streams
	Mux       *datagram.Mux
	Usage     *usage.Conn // set by Register
	Limits    *acl.Share  // set when the connection is admitted
	conn      wire.Conn
	taken     *taken    // of an uplink over TCP
	meetings  *meetings // of an uplink over QUIC
	stats     func() usage.Stats
	until     time.Time
}

// quicConn is a wire.Conn over QUIC.
type quicConn struct{ *quic.Conn }

func (c quicConn) AcceptStream(ctx context.Context) (wire.Stream, error) {
	st, err := c.Conn.AcceptStream(ctx)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// handshake is filled in during the TLS handshake and found again in the connection's context.
type handshake struct {
	end func() // ends the count of the handshake
	mu  sync.Mutex
	in  Incoming
}

type handshakeKey struct{}

// Listener is a bound server.
type Listener struct {
	socket     *socket
	quic       *quic.Transport
	ln         *quic.Listener
	handshakes handshakes
	muxes      sync.WaitGroup
	punches    puncher
}

// Listen binds the server's address.
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

// Addr returns the bound address.
func (l *Listener) Addr() net.Addr { return l.socket.LocalAddr() }

// Dial connects from the listener's socket.
func (l *Listener) Dial(ctx context.Context, to *net.UDPAddr, conf *tls.Config, q *quic.Config) (*quic.Conn, error) {
	return l.quic.Dial(ctx, to, conf, q)
}

// Reaches reports whether packets from the listener's socket may reach an address: whether it is
// bound to all addresses of the host, or to the one that the route to it has.
func (l *Listener) Reaches(to *net.UDPAddr) bool {
	own := l.Addr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	if own.IsUnspecified() || own.IsLoopback() && to.IP.IsLoopback() {
		return true
	}
	source, err := sourceTo(to.AddrPort())
	return err == nil && source.Unmap() == own
}

// Accept waits for the next connection with a verified peer. It returns an error if there will be
// no more.
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

// Offer returns the files that the next process needs in addition to the socket. The caller closes
// them.
func (l *Listener) Offer() ([]*os.File, error) { return l.socket.offer() }

// Drain leaves new connections to the next process, which has the files offered last. That process
// passes on the packets of existing connections. Handshakes under way are completed here.
func (l *Listener) Drain() { l.socket.drain() }

// Stop admits no more peers. Handshakes under way are either completed, and Accept returns their
// connections, or refused, or left unanswered so that the peers try again until the next process is
// running. Stop returns when this is decided.
func (l *Listener) Stop() { l.ln.Close() }

// Close closes the listener and its remaining connections without notifying their peers.
func (l *Listener) Close() {
	l.ln.Close()
	l.quic.Close()
	l.socket.Close()
	l.muxes.Wait()
}

// config returns the TLS configuration for the target that the SNI names, and checks the peer. A
// peer that offers only the protocol of uplinks makes one; uplink is empty where it may not.
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

// Register adds the connection to a table until remove is called. See usage.Table.Add.
func (in *Incoming) Register(t *usage.Table, shed func()) (remove func()) {
	row := usage.Row{Direction: telemetry.In, Target: in.Target, Caller: in.Peer.ID, Transport: in.Transport, Remote: in.RemoteAddr().String(), Allowed: MaxStreams}
	if tcp, ok := in.RemoteAddr().(*net.TCPAddr); ok {
		row.Remote = tcp.AddrPort().Addr().Unmap().String()
	}
	in.Usage, remove = t.Add(row, in.stats, &in.Mux.Read, shed)
	return remove
}

// AcceptStream waits for the next stream. It fails when the connection ends.
func (in *Incoming) AcceptStream() (wire.Stream, error) {
	return in.conn.AcceptStream(in.conn.Context())
}

// OpenStream opens a stream to the peer of an uplink. Over TCP it returns an error while the
// connection has one.
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

// taken records that an uplink over TCP has or had its stream.
type taken struct {
	mu sync.Mutex
	is bool
}

// errTaken is the error for a connection over TCP that has or had a stream, or has ended.
var errTaken = errors.New("the connection has a stream or has ended")

// Wait returns when an uplink has ended. Over TCP nothing reads a connection that waits for its
// stream, so Wait looks whether the peer has closed it.
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

// Context returns a context that ends with the connection.
func (in *Incoming) Context() context.Context { return in.conn.Context() }

// Expired reports whether the connection must accept no more streams.
func (in *Incoming) Expired() bool { return time.Now().After(in.until) }

// Silent reports whether nothing was received for longer than a working peer would be silent.
func (in *Incoming) Silent() bool {
	received := in.Usage.Received()
	return in.Transport == document.OverQUIC && !received.IsZero() && time.Since(received) > silence
}

// RemoteAddr returns the address of the peer.
func (in *Incoming) RemoteAddr() net.Addr { return in.conn.RemoteAddr() }

// LocalAddr returns the address that the peer called.
func (in *Incoming) LocalAddr() net.Addr { return in.conn.LocalAddr() }

// Leave tells the peer to open new streams on another connection, which is then accepted by another
// process. This connection continues with streams that are open or being opened.
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

// Cut ends the connection and its streams. The peer may open streams numbered first and above
// again, because they have not been served.
func (in *Incoming) Cut(first quic.StreamID) {
	in.conn.CloseWithError(quic.ApplicationErrorCode(wire.Reset), wire.Unserved(int64(first)))
}

// Close ends the connection and all its streams.
func (in *Incoming) Close(code wire.Code) { closeWith(in.conn, code) }
