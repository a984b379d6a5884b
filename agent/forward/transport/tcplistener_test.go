package transport_test

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
)

// TestSilentOverTCP checks that peers that begin no handshake, or do not finish it, may stay for a
// while up to a limit, and that each new peer gets a place.
func TestSilentOverTCP(t *testing.T) {
	const room = 256
	n := newNetwork(t)
	var silent []net.Conn
	for i := range room + 50 {
		c, err := net.Dial("tcp", n.echo.tcp)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 { // half a record of a handshake
			c.Write([]byte{22, 3, 1, 2, 0, 1})
		}
		silent = append(silent, c)
	}
	for range 10 {
		if got := n.goes(t, document.OverTCP); got != document.OverTCP {
			t.Fatal(got)
		}
	}
	// The first ones made room, the last ones end by themselves.
	for _, c := range []net.Conn{silent[0], silent[49], silent[len(silent)-1]} {
		c.SetReadDeadline(time.Now().Add(kit.Patience))
		if _, err := io.ReadAll(c); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Error("a silent connection stays")
		}
	}
}

// TestHandshakesOverTCP checks that a peer that is not the target, not trusted or speaks another
// protocol is refused as over QUIC, with its identity in the error.
func TestHandshakesOverTCP(t *testing.T) {
	ca, other := kit.NewCA(), kit.NewCA()
	rejected := make(chan transport.Rejection, 16)
	ursula := host(t, "ursula", ca, outline)
	config := transport.Server{
		Addr: "127.0.0.1:0", Lookup: registry(t).Lookup, Identities: func() *hostdir.SVIDSet { return ursula },
		Rejected: func(r transport.Rejection) { rejected <- r },
	}
	ln, err := config.ListenTCP()
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			t.Errorf("%s is let in", in.Peer.ID)
			in.Close(wire.Denied)
		}
	})
	defer func() { ln.Stop(); serving.Wait(); ln.Close() }()
	for _, c := range []struct {
		name, reason, want string
		set                *hostdir.SVIDSet
		target             spiffe.ID
	}{
		{"a stranger", "bad-certificate", "", host(t, "laptop", other, alice), outline},
		{"a name that is not published", "unknown-name", "refused: not-published", host(t, "laptop", ca, alice), wiki},
	} {
		p, err := transport.NewPool(func() *hostdir.SVIDSet { return c.set }, &usage.Table{})
		if err != nil {
			t.Fatal(err)
		}
		r := route(t, c.target, ln.Addr().String())
		r.Transport = document.OverTCP
		if err := try(t, p, r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		p.Close()
		if c.reason == "bad-certificate" {
			continue // the caller refuses the target first
		}
		if got := <-rejected; got.Reason != c.reason || got.Remote == nil {
			t.Errorf("%s is reported as %+v", c.name, got)
		}
	}
	laptop := host(t, "laptop", ca, alice)
	for name, protocols := range map[string][]string{"no protocol": nil, "another protocol": {wire.ALPN}} {
		c, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{
			InsecureSkipVerify: true, ServerName: "outline.demo.flor.rete", NextProtos: protocols, Certificates: []tls.Certificate{laptop.SVID(alice).Cert},
		})
		if err == nil {
			_, err = c.Read(make([]byte, 1)) // the client's handshake ends before the server's
			c.Close()
		}
		if err == nil {
			t.Errorf("%s is let in", name)
		}
	}
}

// TestBegunOverTCP checks that a peer that has begun a handshake is admitted, however many silent
// ones connect from the same address before it ends.
func TestBegunOverTCP(t *testing.T) {
	ca := kit.NewCA()
	ursula := host(t, "ursula", ca, outline)
	config := transport.Server{Addr: "127.0.0.1:0", Lookup: registry(t).Lookup, Identities: func() *hostdir.SVIDSet { return ursula }}
	ln, err := config.ListenTCP()
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	accepted := make(chan *transport.Incoming, 1)
	serving.Go(func() {
		defer close(accepted)
		if in, err := ln.Accept(); err == nil {
			accepted <- in
			in.Close(wire.Done)
		}
	})
	defer func() { ln.Stop(); serving.Wait(); ln.Close() }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client := tls.Client(kit.AfterRead{Conn: c, Do: sync.OnceFunc(func() { flood(t, ln.Addr().String()) })}, &tls.Config{
		InsecureSkipVerify: true, ServerName: "outline.demo.flor.rete", NextProtos: []string{wire.ALPNOverTCP},
		Certificates: []tls.Certificate{host(t, "laptop", ca, alice).SVID(alice).Cert},
	})
	defer client.Close()
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if in := kit.Reads(t, "alice, who must not make room for silent ones", accepted); in.Peer.ID != alice {
		t.Errorf("%s is let in", in.Peer.ID)
	}
}

// flood connects until its connections have displaced others.
func flood(t *testing.T, address string) {
	var all []net.Conn
	for range 600 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		all = append(all, c)
	}
	all[300].Read(make([]byte, 1))
}
