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

// tcpHandshakes limits the handshakes under way over TCP, and separately the connections that have
// not begun one. One more evicts the one that has waited longest, of the network with the most.
var tcpHandshakes = conns.Limit{Total: 1024, Prefix: 256}

// acceptPause keeps the accept loop from spinning while the host is out of file descriptors.
const acceptPause = 50 * time.Millisecond

// TCPListener is a listener for peers over TCP.
type TCPListener struct {
	ln       net.Listener
	server   *Server
	accepted chan *Incoming
	ctx      context.Context // context of the handshakes
	end      context.CancelFunc
	stopped  context.Context // ends when no more connections come
	stop     context.CancelFunc
	shaking  sync.WaitGroup // goroutines that accept, and handshakes
	conns    sync.WaitGroup
}

// ListenTCP binds the server's address for TCP.
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

// shake performs the handshake of a connection. Failures are passed to Server.Rejected, except
// those of peers that close the connection or do not use TLS.
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

// shake performs the handshake of a connection that carries one stream at a time. begin is called
// when the peer has sent the first message, and end after the handshake.
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
		idle = func() {} // the host makes another connection for the next stream
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

// Offer and Drain are like those of Listener. The next process needs only the socket.
func (l *TCPListener) Offer() ([]*os.File, error) { return nil, nil }

func (l *TCPListener) Drain() { l.ln.Close() }

// Stop admits no more peers. Handshakes under way are completed, and Accept returns their
// connections. New connections wait in the kernel for the next process if it has the socket, and
// are refused otherwise. Stop returns when all handshakes have ended.
func (l *TCPListener) Stop() {
	l.ln.Close()
	l.shaking.Wait()
	l.stop()
}

// Close closes the listener and ends handshakes under way. Its connections must have been closed.
func (l *TCPListener) Close() {
	l.end()
	l.Stop()
	l.conns.Wait()
}
