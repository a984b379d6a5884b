package server_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// TestSilentConnections checks that a client that keeps opening connections, and sends nothing or
// half a request, neither delays nor blocks other clients, at other addresses or at the same
// address.
func TestSilentConnections(t *testing.T) {
	e, r := start(t, new(echo))
	to, err := e.Dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	hello := []byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03}
	dial := func(from string) (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		return d.DialContext(t.Context(), "tcp", to.RemoteAddr().String())
	}
	flood := func(n int) {
		for i := range n {
			c, err := dial(fmt.Sprintf("127.0.0.%d", 10+i%5))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			if i%2 == 0 {
				c.Write(hello)
			}
		}
	}
	for _, from := range []string{"127.0.0.2", "127.0.0.10"} {
		for range 3 {
			flood(1100)
			c := e.Client(ursula)
			c.Dial = func(context.Context, string, string) (net.Conn, error) { return dial(from) }
			for tries := 1; ; tries++ {
				_, err := c.Do(t.Context(), hostapi.Path("oidc"), r)
				if err == nil {
					break
				}
				// On a busy machine, the flood takes longer than a client waits.
				if tries == 10 || hostapi.AsError(err).Code != hostapi.CodeUnavailable.Name {
					t.Fatalf("from %s: %v", from, err)
				}
			}
		}
	}
}

// TestBegun checks that a client that has begun a handshake can finish it, however many silent
// clients there are at the same address.
func TestBegun(t *testing.T) {
	e := providertest.NewEnv(t, "ursula", "raishan")
	e.Start()
	connect := func() net.Conn {
		c, err := e.Dial(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	flood := sync.OnceFunc(func() {
		first := connect()
		for range 600 {
			connect()
		}
		first.Read(make([]byte, 1)) // until the server closes it to make room
	})
	conn := tls.Client(kit.AfterRead{Conn: connect(), Do: flood}, &tls.Config{InsecureSkipVerify: true})
	conn.SetDeadline(time.Now().Add(kit.Patience))
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: provider\r\nContent-Length: 0\r\n\r\n", hostapi.Path("cert")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 4096)); err != nil {
		t.Error(err)
	}
}

// TestVouched checks that a connection with a verified certificate is never closed to make room for
// others.
func TestVouched(t *testing.T) {
	e := providertest.NewEnv(t, "ursula", "raishan")
	e.Start()
	raw, err := e.Dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*e.Issue(ursula, time.Hour)}})
	defer conn.Close()
	ask := func() {
		t.Helper()
		conn.SetDeadline(time.Now().Add(kit.Patience))
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: provider\r\nContent-Length: 0\r\n\r\n", hostapi.Path("cert")); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	for range 600 {
		c, err := e.Dial(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	// When this request is answered, the server has accepted all connections that were opened.
	if _, err := e.Client(kit.ID("node/raishan")).Do(t.Context(), hostapi.Path("cert"), renewal()); err == nil {
		t.Fatal("granted")
	}
	ask()
}
