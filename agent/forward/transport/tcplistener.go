package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/agent/forward/tcpstream"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
)

// tcpHandshakes limits the handshakes under way over TCP. The same limit applies separately to
// connections that have not yet begun a handshake. When a limit is exceeded, the longest-waiting
// connection of the network with the most connections is closed.
var tcpHandshakes = conns.Limit{Total: 1024, Prefix: 256}

// acceptPause is the delay after a failed accept. It keeps the accept loop from spinning while the
// host is out of file descriptors.
const acceptPause = 50 * time.Millisecond

// TCPListener accepts connections from other forwarders over TCP.
type TCPListener struct {
	ln       net.Listener
	server   *Server
	accepted chan *Incoming
	ctx      context.Context // ends to abort handshakes under way
	end      context.CancelFunc
	stopped  context.Context // ends when Accept will return no more connections
	stop     context.CancelFunc
	shaking  sync.WaitGroup // the accept loop and the handshakes
	conns    sync.WaitGroup
}

// ListenTCP binds the server's address for TCP and begins to accept connections.
func (s *Server) ListenTCP() (*TCPListener, error) {
	addr, err := net.ResolveTCPAddr("tcp", s.Addr)
	if err != nil {
		return nil, fmt.Errorf("forwarder listen %q over TCP: %w", s.Addr, err)
	}
	bind := s.BindTCP
	if bind == nil {
		bind = func(a netip.AddrPort) (*net.TCPListener, error) {
			return net.ListenTCP("tcp", net.TCPAddrFromAddrPort(a))
		}
	}
	ln, err := bind(addr.AddrPort())
	if err != nil {
		return nil, fmt.Errorf("forwarder listen %q over TCP: %w", s.Addr, err)
	}
	l := &TCPListener{ln: conns.Listen(ln, tcpHandshakes), server: s, accepted: make(chan *Incoming)}
	l.ctx, l.end = context.WithCancel(context.Background())
	l.stopped, l.stop = context.WithCancel(context.Background())
	l.shaking.Go(l.accept)
	return l, nil
}

// Addr returns the bound address.
func (l *TCPListener) Addr() net.Addr { return l.ln.Addr() }

func (l *TCPListener) accept() {
	for {
		c, err := l.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(acceptPause)
			continue
		}
		l.shaking.Go(func() {
			if err := l.shake(c); err != nil {
				c.Close()
			}
		})
	}
}

// shake performs the TLS handshake of an accepted connection and passes the connection to Accept.
// It passes failures to Server.Rejected, except if the peer closed the connection or does not use
// TLS.
func (l *TCPListener) shake(c net.Conn) error {
	socket, err := tcpstream.NewSocket(c.(interface{ NetConn() net.Conn }).NetConn().(*net.TCPConn))
	if err != nil {
		return err
	}
	in, err := l.server.shake(l.ctx, socket, document.OverTCP, func() error { return conns.Begin(c) }, func() { conns.Release(c) }, &l.conns)
	if err != nil {
		return err
	}
	select {
	case l.accepted <- in:
	case <-l.ctx.Done():
		in.Close(wire.Stopping)
	}
	return nil
}

// shake performs the TLS handshake with a caller whose connection carries one stream at a time. It
// calls the function begin when the caller has sent its first message, and the function end after
// the handshake.
func (s *Server) shake(ctx context.Context, socket *tcpstream.Socket, over document.Transport, begin func() error, end func(), tasks *sync.WaitGroup) (*Incoming, error) {
	h := &handshake{end: end}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, handshakeKey{}, h), handshakeTimeout)
	defer cancel()
	uplink := wire.ALPNUplinkOverTCP
	if over == Relayed {
		uplink = ""
	}
	t := tls.Server(socket, &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{wire.ALPNOverTCP, wire.ALPNUplinkOverTCP},
		SessionTicketsDisabled: true,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if err := begin(); err != nil {
				return nil, err
			}
			return s.config(wire.ALPNOverTCP, uplink, hello)
		},
	})
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	in := h.in
	var idle func()
	if in.Uplink {
		in.taken = &taken{}
		idle = func() {} // the peer makes another connection for the next stream
	}
	conn := tcpstream.New(t, idle, tasks)
	in.Transport, in.conn, in.stats, in.Mux = over, conn, conn.Stats, datagram.NewMux(nil, nil)
	return &in, nil
}

// Accept is like Listener.Accept.
func (l *TCPListener) Accept() (*Incoming, error) {
	select {
	case in := <-l.accepted:
		return in, nil
	case <-l.stopped.Done():
		return nil, net.ErrClosed
	}
}

// Offer returns no files. The next process of the forwarder, which replaces this one, needs only
// the listening socket.
func (l *TCPListener) Offer() ([]*os.File, error) { return nil, nil }

// Drain stops accepting connections, because the next process of the forwarder accepts all new
// ones.
func (l *TCPListener) Drain() { l.ln.Close() }

// Stop stops accepting connections, and waits for the handshakes that have begun. Accept still
// returns the connections of these handshakes. Later connections wait in the kernel if the next
// process has the socket. Otherwise the kernel refuses them.
func (l *TCPListener) Stop() {
	l.ln.Close()
	l.shaking.Wait()
	l.stop()
}

// Close closes the listener and aborts handshakes that have begun. The caller must have closed all
// accepted connections before.
func (l *TCPListener) Close() {
	l.end()
	l.Stop()
	l.conns.Wait()
}
