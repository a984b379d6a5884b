package forward_test

import (
	"bufio"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"github.com/pires/go-proxyproto/tlvparse"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// announcing returns a running cluster whose service learns the caller.
func announcing(t *testing.T, upstream string, a document.Announcement) *cluster {
	t.Helper()
	c := newCluster(t, upstream)
	c.Publish.Publish[0].Identity = a
	c.acceptUrsula(t)
	c.start(t)
	return c
}

// TestProxyHeader checks that the header comes before anything that the caller sends, even before a
// PROXY header of the caller's.
func TestProxyHeader(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			at := "127.0.0.1:0"
			if network == "unix" {
				at = filepath.Join(t.TempDir(), "service.sock")
			}
			ln, err := net.Listen(network, at)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { ln.Close() })
			upstream := ln.Addr().String()
			if network == "unix" {
				upstream = "unix:" + at
			}
			c := announcing(t, upstream, document.ProxyV2)
			process := dial(t, c.Local)
			const forged = "PROXY TCP4 198.51.100.1 198.51.100.2 1 2\r\nhello"
			if _, err := process.Write([]byte(forged)); err != nil {
				t.Fatal(err)
			}
			process.CloseWrite()
			service, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer service.Close()
			service.SetDeadline(time.Now().Add(kit.Patience))
			r := bufio.NewReader(service)
			h, err := proxyproto.Read(r)
			if err != nil {
				t.Fatal(err)
			}
			tlvs, err := h.TLVs()
			if err != nil {
				t.Fatal(err)
			}
			tls, _ := tlvparse.FindSSL(tlvs)
			if cn, _ := tls.ClientCN(); cn != alice.String() {
				t.Errorf("the caller is %q, want %s", cn, alice)
			}
			from, to, ok := h.TCPAddrs()
			if !ok || !from.IP.IsLoopback() || from.Port == 0 || to.String() != c.Publish.Listen[0] {
				t.Errorf("from %s to %s, want loopback and %s", from, to, c.Publish.Listen[0])
			}
			rest, err := io.ReadAll(r)
			if err != nil || string(rest) != forged {
				t.Errorf("then came %q, %v, want what the caller sent", rest, err)
			}
		})
	}
}

// TestUnannounced checks that a service without an announcement gets only the caller's bytes, as
// soon as the documents say so.
func TestUnannounced(t *testing.T) {
	c := announcing(t, agenttest.Echo(t), document.ProxyV2)
	first := func() string {
		p := dial(t, c.Local)
		if _, err := io.WriteString(p, "hello"); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 5)
		if _, err := io.ReadFull(p, b); err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := first(); got == "hello" {
		t.Error("the service gets no header")
	}
	c.Publish.Publish[0].Identity = document.Unannounced
	c.acceptUrsula(t)
	if got := first(); got != "hello" {
		t.Errorf("the service gets %q, want what the caller sent", got)
	}
}
