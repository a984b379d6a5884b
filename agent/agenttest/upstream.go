package agenttest

import (
	"io"
	"net"
	"testing"

	"github.com/florete/florete/tests/kit"
)

// Upstream starts an upstream, which is the program that a published service leads to. The upstream
// listens on loopback and calls the function serve for each connection. Upstream returns the
// address of the listener.
func Upstream(t testing.TB, serve func(*net.TCPConn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go kit.Accept(ln, func(c net.Conn) { serve(c.(*net.TCPConn)) })
	return ln.Addr().String()
}

// Echo starts an upstream that sends back all bytes that it receives. The upstream ends its
// direction of the connection when the client has ended its own. Echo returns the address of the
// upstream.
func Echo(t testing.TB) string {
	t.Helper()
	return Upstream(t, func(c *net.TCPConn) {
		io.Copy(c, c)
		c.CloseWrite()
		io.Copy(io.Discard, c)
	})
}

// Ping checks that a connection reaches an echo upstream: it sends one byte and expects the byte
// back.
func Ping(c net.Conn) error {
	b := []byte{'x'}
	if _, err := c.Write(b); err != nil {
		return err
	}
	_, err := io.ReadFull(c, b)
	return err
}
