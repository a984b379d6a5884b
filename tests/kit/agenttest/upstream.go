package agenttest

import (
	"io"
	"net"
	"testing"

	"github.com/florete/florete/tests/kit"
)

// Upstream starts a TCP server that stands for the local program behind a published service, and
// returns its address on loopback. It calls serve for each connection, until the test ends.
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

// Echo starts an Upstream that sends back all bytes that it receives, and returns its address. When
// the client has ended its direction of the connection, the server ends its own.
func Echo(t testing.TB) string {
	t.Helper()
	return Upstream(t, func(c *net.TCPConn) {
		io.Copy(c, c)
		c.CloseWrite()
		io.Copy(io.Discard, c)
	})
}

// Ping returns nil if the connection c leads to a server that Echo has started. It sends one byte
// and expects it back.
func Ping(c net.Conn) error {
	b := []byte{'x'}
	if _, err := c.Write(b); err != nil {
		return err
	}
	_, err := io.ReadFull(c, b)
	return err
}
