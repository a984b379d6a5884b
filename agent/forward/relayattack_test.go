package forward_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// relayPeer is a connection to a relay that is made without a forwarder.
type relayPeer struct{ *quic.Conn }

// toRelay connects to a relay as id, which may be anybody's.
func toRelay(t *testing.T, c *cluster, id spiffe.ID, alpn string) relayPeer {
	t.Helper()
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		t.Fatal(err)
	}
	from := &quic.Transport{Conn: socket}
	t.Cleanup(func() { from.Close(); socket.Close() })
	return toRelayFrom(t, c, from, id, alpn)
}

// toRelayFrom is like toRelay from a given socket.
func toRelayFrom(t *testing.T, c *cluster, from *quic.Transport, id spiffe.ID, alpn string) relayPeer {
	t.Helper()
	doc, err := c.Relays[0].Layout.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	f := doc.Manifest().Forwarder
	vertex, err := spiffe.Dial(f.Relay.ID)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := from.Dial(t.Context(), net.UDPAddrFromAddrPort(netip.MustParseAddrPort(f.Listen[0])), &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{alpn}, ServerName: spiffe.SNI(vertex), InsecureSkipVerify: true,
		Certificates: []tls.Certificate{*c.CA.Issue(id, time.Hour)},
	}, &quic.Config{MaxIncomingStreams: 100, KeepAlivePeriod: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseWithError(0, "") })
	return relayPeer{conn}
}

// ask opens a stream for a label and returns the relay's answer, an error if it refuses.
func (p relayPeer) ask(label string) error {
	st, err := p.OpenStream()
	if err != nil {
		return err
	}
	st.SetDeadline(time.Now().Add(kit.Patience))
	if _, err := st.Write(wire.AppendLabel(nil, label)); err != nil {
		return err
	}
	var answer [1]byte
	_, err = io.ReadFull(st, answer[:])
	return err
}

// wantCode checks that an error is a refusal of a stream or of a connection with a code.
func wantCode(t *testing.T, err error, want wire.Code) {
	t.Helper()
	var stream *quic.StreamError
	var conn *quic.ApplicationError
	switch {
	case errors.As(err, &stream) && wire.Code(stream.ErrorCode) == want:
	case errors.As(err, &conn) && wire.Code(conn.ErrorCode) == want:
	default:
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestRelayRefuses checks what peers with valid certificates cannot do at a relay.
func TestRelayRefuses(t *testing.T) {
	throughRelays(t, 1)
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	label := fmt.Sprintf("%032x", 1) // of the route from laptop to ursula
	mallory := kit.ID("node/mallory")

	t.Run("a node that no route names", func(t *testing.T) {
		wantCode(t, toRelay(t, c, mallory, wire.ALPN).ask(label), wire.Denied)
	})
	t.Run("a user of a node that a route names", func(t *testing.T) {
		wantCode(t, toRelay(t, c, alice, wire.ALPN).ask(label), wire.Denied)
	})
	t.Run("the target of a route as its caller", func(t *testing.T) {
		wantCode(t, toRelay(t, c, ursula, wire.ALPN).ask(label), wire.Denied)
	})
	t.Run("a label that is none", func(t *testing.T) {
		peer := toRelay(t, c, laptop, wire.ALPN)
		for _, wrong := range []string{"", "x", fmt.Sprintf("%032x", 2), label + "0", label[1:]} {
			wantCode(t, peer.ask(wrong), wire.Denied)
		}
		if err := peer.ask(label); err != nil {
			t.Errorf("the right label: %v", err)
		}
	})
	t.Run("a stream to a service", func(t *testing.T) {
		peer := toRelay(t, c, laptop, wire.ALPN)
		st, err := peer.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		st.Write(wire.Preamble{Type: wire.TCP, Target: outline}.Append(nil))
		_, err = st.Read(make([]byte, 1))
		wantCode(t, err, wire.BadPreamble)
	})
	t.Run("an uplink of a node that no route leads to", func(t *testing.T) {
		for _, id := range []spiffe.ID{mallory, laptop, outline} {
			peer := toRelay(t, c, id, wire.ALPNUplink)
			_, err := peer.AcceptStream(t.Context())
			wantCode(t, err, wire.Denied)
		}
	})
	t.Run("labels without end", func(t *testing.T) {
		peer := toRelay(t, c, laptop, wire.ALPN)
		for i := range 3000 {
			go peer.ask(fmt.Sprintf("%032x", i+100))
		}
		began := time.Now()
		if !reaches(c.Local) {
			t.Error("nobody else is served meanwhile")
		}
		t.Logf("served after %s", time.Since(began))
	})
}

// TestRelayCannotAnswer checks that a relay that sends callers to another host, or answers itself,
// does not pass for the service.
func TestRelayCannotAnswer(t *testing.T) {
	throughRelays(t, 1)
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	gate := c.Relays[0]
	doc, err := gate.Layout.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	f := doc.Manifest().Forwarder
	// The relay sends laptop to mallory, who publishes a service under the opaque name of outline.
	mallory := agenttest.NewHost(t, "mallory", c.CA)
	other := kit.ID("service/other")
	evil := c.Publish
	evil.Listen = []string{agenttest.Loopback().String()}
	evil.Publish = []document.Published{{ID: other, Upstream: c.Publish.Publish[0].Upstream, OpaqueName: c.Publish.Publish[0].OpaqueName, Allow: []document.Allow{{ID: alice}}}}
	mallory.Accept(evil, other)
	for _, id := range []spiffe.ID{kit.ID("node/mallory"), other} {
		mallory.Deliver(c.CA, id, time.Hour)
	}
	route := f.Relay.Routes[0]
	route.To = kit.ID("node/mallory")
	f.Relay = &document.Relaying{ID: f.Relay.ID, Routes: []document.RelayRoute{route}}
	gate.Accept(f, f.Relay.ID)
	c.inForce(t, gate)
	run(t, mallory)
	kit.Eventually(t, "mallory's uplink", func() bool {
		up := report(t, mallory).Uplinks
		return len(up) == 1 && up[0].Transport != ""
	})
	wantRefused(t, c.Local)
	refusals(t, c.Laptop, "impostor", 1)
	if n := report(t, mallory).Connections; n != 0 {
		t.Errorf("mallory has %d connections, want none", n)
	}
}
