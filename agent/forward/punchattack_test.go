package forward_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// meet asks a relay for the address of the host that a label leads to.
func (p relayPeer) meet(label string) (m wire.Meeting, err error) {
	st, err := p.OpenStream()
	if err != nil {
		return m, err
	}
	defer st.Close()
	st.SetDeadline(time.Now().Add(kit.Patience))
	if _, err := st.Write(wire.AppendMeet(nil, label)); err != nil {
		return m, err
	}
	var answer [1]byte
	if _, err := io.ReadFull(st, answer[:]); err != nil {
		return m, err
	}
	return wire.ReadMeeting(st)
}

var firstLabel = fmt.Sprintf("%032x", 1) // of the route from laptop to ursula

// TestMeetRefused checks which callers get no address from a relay.
func TestMeetRefused(t *testing.T) {
	throughRelays(t, 1)
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	kit.Eventually(t, "the uplink", func() bool {
		up := report(t, c.Ursula).Uplinks
		return len(up) == 1 && up[0].Transport != ""
	})
	t.Run("of a host that does not meet others", func(t *testing.T) {
		_, err := toRelay(t, c, laptop, wire.ALPN).meet(firstLabel)
		wantCode(t, err, wire.NoRoute)
	})
	c.Publish.Meet = true
	c.AcceptUrsula()
	c.inForce(t, c.Ursula)
	t.Run("a node that the route does not name", func(t *testing.T) {
		for _, id := range []spiffe.ID{ursula, alice, kit.ID("node/mallory")} {
			_, err := toRelay(t, c, id, wire.ALPN).meet(firstLabel)
			wantCode(t, err, wire.Denied)
		}
	})
	t.Run("a label that is none", func(t *testing.T) {
		peer := toRelay(t, c, laptop, wire.ALPN)
		for _, label := range []string{"", fmt.Sprintf("%032x", 2)} {
			_, err := peer.meet(label)
			wantCode(t, err, wire.Denied)
		}
	})
	t.Run("at a forwarder that is no relay", func(t *testing.T) {
		target, err := spiffe.Dial(outline)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := quic.DialAddr(t.Context(), c.Publish.Listen[0], &tls.Config{
			NextProtos: []string{wire.ALPN}, ServerName: spiffe.SNI(target), InsecureSkipVerify: true,
			Certificates: []tls.Certificate{*c.CA.Issue(alice, time.Hour)},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.CloseWithError(0, "")
		_, err = relayPeer{conn}.meet(firstLabel)
		wantCode(t, err, wire.BadPreamble)
	})
	kit.Eventually(t, "the one that may learn it", func() bool {
		m, err := toRelay(t, c, laptop, wire.ALPN).meet(firstLabel)
		return err == nil && m.Peer.String() == c.Publish.Listen[0]
	})
}

// TestMeetFlood checks that a host sends few packets to a caller, however often it or a relay that
// lies asks for them.
func TestMeetFlood(t *testing.T) {
	throughRelays(t, 1)
	c := newCluster(t, agenttest.Echo(t))
	c.Publish.Meet = true
	c.AcceptUrsula()
	c.start(t)
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	from := &quic.Transport{Conn: socket}
	defer from.Close()
	var packets atomic.Int64
	go func() {
		for b := make([]byte, 1500); ; {
			if _, _, err := from.ReadNonQUICPacket(t.Context(), b); err != nil {
				return
			}
			packets.Add(1)
		}
	}()
	peer := toRelayFrom(t, c, from, laptop, wire.ALPN)
	kit.Eventually(t, "the relay to know that ursula may be met", func() bool {
		_, err := peer.meet(firstLabel)
		return err == nil
	})
	began, refused := time.Now(), 0
	for range 300 {
		if _, err := peer.meet(firstLabel); err != nil {
			wantCode(t, err, wire.Busy)
			refused++
		}
	}
	took := time.Since(began)
	if refused < 200 {
		t.Errorf("%d of 300 were refused, want most", refused)
	}
	time.Sleep(1500 * time.Millisecond)
	// 20 packets of one byte take a second. Further ones are sent only after these.
	if n, most := packets.Load(), int64(20*(2+took/time.Second)); n < 20 || n > most {
		t.Errorf("%d packets in %s, want 20 to %d", n, took, most)
	}
}

// TestRelayLies checks that a relay that names the address of another host does not lead callers
// there.
func TestRelayLies(t *testing.T) {
	throughRelays(t, 1)
	c := newCluster(t, agenttest.Echo(t))
	// Whoever has the key of ursula's node makes the relay say what it likes. At the address is a
	// forwarder of another service.
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	liar := &quic.Transport{Conn: socket}
	defer liar.Close()
	called := make(chan struct{}, 10)
	ln, err := liar.Listen(&tls.Config{NextProtos: []string{wire.ALPN}, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		called <- struct{}{}
		return &tls.Config{NextProtos: []string{wire.ALPN}, Certificates: []tls.Certificate{*c.CA.Issue(kit.ID("service/other"), time.Hour)}}, nil
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	up := toRelayFrom(t, c, liar, ursula, wire.ALPNUplink)
	out, err := up.OpenUniStream()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write([]byte{wire.MayMeet}); err != nil {
		t.Fatal(err)
	}
	told, err := up.AcceptUniStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(told, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if m, err := wire.ReadMeeting(told); err != nil || m.Own != socket.LocalAddr().(*net.UDPAddr).AddrPort() || m.Peer != (netip.AddrPort{}) {
		t.Fatalf("told %v, %v, want the own address", m, err)
	}
	c.Reach.Meet = true
	c.AcceptLaptop()
	c.start(t)
	kit.Eventually(t, "ursula's uplink", func() bool {
		up := report(t, c.Ursula).Uplinks
		return len(up) == 1 && up[0].Transport != ""
	})
	kit.Eventually(t, "outline to be reached", func() bool { return reaches(c.Local) })
	if m, err := wire.ReadMeeting(told); err != nil || !m.Peer.IsValid() {
		t.Errorf("told %v, %v, want the address of laptop", m, err)
	}
	select {
	case <-called:
	case <-time.After(kit.Patience):
		t.Fatal("laptop did not connect to the address that it was told")
	}
	for range 3 {
		time.Sleep(100 * time.Millisecond)
		if !reaches(c.Local) {
			t.Error("outline is not reached")
		}
	}
	for _, row := range report(t, c.Laptop).PeerConnections {
		if row.Direction == telemetry.Out && row.Target == outline && row.Transport == transport.Punched {
			t.Errorf("laptop has a direct connection to %s", row.Remote)
		}
	}
}
