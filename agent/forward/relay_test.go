package forward_test

import (
	"testing"
	"time"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// throughRelays makes the clusters of this test have relays between their hosts.
func throughRelays(t *testing.T, n int) {
	agenttest.Relays = n
	t.Cleanup(func() { agenttest.Relays = 0 })
}

// TestTwoRelaysOverTCP checks a path through two relays where UDP is not used at all.
func TestTwoRelaysOverTCP(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it repeats tests")
	}
	throughRelays(t, 2)
	agenttest.Transport = document.OverTCP
	defer func() { agenttest.Transport = document.AnyTransport }()
	for name, test := range map[string]func(*testing.T){
		"AllowListChange":      TestAllowListChange,
		"Datagrams":            TestDatagrams,
		"DeniedByTheAllowList": TestDeniedByTheAllowList,
		"HalfClose":            TestHalfClose,
		"LargeTransfer":        TestLargeTransfer,
		"ResetWhileBlocked":    TestResetWhileBlocked,
		"Restart":              TestRestart,
		"Revoked":              TestRevoked,
	} {
		t.Run(name, test)
	}
}

// TestNoRoute checks that a relay carries streams of the nodes and labels that its routes name, and
// ends them when they no longer do.
func TestNoRoute(t *testing.T) {
	throughRelays(t, 1)
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	conn := dial(t, c.Local)
	if err := agenttest.Ping(conn); err != nil {
		t.Fatal(err)
	}
	gate := c.Relays[0]
	doc, err := gate.Layout.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	f := doc.Manifest().Forwarder
	if up := report(t, c.Ursula).Uplinks; len(up) != 1 || up[0].Transport != document.OverQUIC {
		t.Errorf("uplinks of ursula: %+v, want one over QUIC", up)
	}
	change := func(of func(*document.RelayRoute)) {
		changed := f
		route := f.Relay.Routes[0]
		of(&route)
		changed.Relay = &document.Relaying{ID: f.Relay.ID, Routes: []document.RelayRoute{route}}
		gate.Accept(changed, f.Relay.ID)
		kit.Eventually(t, "the relay to have its routes", func() bool {
			m := report(t, gate).Manifest
			return m != nil && m.Serial == gate.Serial
		})
	}
	change(func(r *document.RelayRoute) { r.Label = "ffffffffffffffffffffffffffffffff" })
	wantReset(t, conn)
	wantRefused(t, c.Local)
	refusals(t, gate, "denied", 1)

	change(func(r *document.RelayRoute) { r.From = []spiffe.ID{kit.ID("node/other")} })
	wantRefused(t, c.Local)
	if detail, peer := refusals(t, gate, "denied", 2); peer != laptop.String() {
		t.Errorf("refused %s (%s), want %s", peer, detail, laptop)
	}

	change(func(*document.RelayRoute) {})
	kit.Eventually(t, "outline to be reached", func() bool { return reaches(c.Local) })
}

// TestRelayRestarts checks that callers and the host find a relay again, after an end in order and
// while a new process takes over.
func TestRelayRestarts(t *testing.T) {
	agenttest.Relays = 0
	throughRelays(t, 1)
	c := &cluster{Cluster: agenttest.NewCluster(t, agenttest.Echo(t))}
	gate := c.Relays[0]
	config := forward.Config{Layout: gate.Layout, Socket: gate.Socket(), Poll: time.Hour}
	stop := runWith(t, config)
	c.start(t)
	kit.Eventually(t, "outline to be reached", func() bool { return reaches(c.Local) })
	conn := dial(t, c.Local)
	if err := agenttest.Ping(conn); err != nil {
		t.Fatal(err)
	}
	stop()
	wantReset(t, conn)
	runWith(t, config)
	kit.Eventually(t, "outline to be reached again", func() bool { return reaches(c.Local) })
}

// TestAnotherRelay checks that streams go through another relay when one stops.
func TestAnotherRelay(t *testing.T) {
	throughRelays(t, 1)
	c := &cluster{Cluster: agenttest.NewCluster(t, agenttest.Echo(t))}
	first := c.Relays[0]
	second := c.anotherRelay(t)
	run(t, second)
	stop := runWith(t, forward.Config{Layout: first.Layout, Socket: first.Socket(), Poll: time.Hour})
	c.start(t)
	c.wantUplinks(t, 2)
	if !reaches(c.Local) {
		t.Fatal("outline is not reached")
	}
	stop()
	for range 3 {
		began := time.Now()
		if !reaches(c.Local) {
			t.Fatal("outline is not reached through the second relay")
		}
		t.Logf("reached after %s", time.Since(began))
	}
}

// TestDirectIsPreferred checks that relays are used while the direct path fails, and only then.
func TestDirectIsPreferred(t *testing.T) {
	throughRelays(t, 1)
	c := newCluster(t, agenttest.Echo(t))
	direct := c.Publish.Listen[0]
	c.Reach.Reach[0].Endpoints = []document.Addresses{{direct}}
	c.AcceptLaptop()
	c.start(t)
	over := func() (transports []document.Transport) {
		for _, row := range report(t, c.Ursula).PeerConnections {
			if row.Target == outline {
				transports = append(transports, row.Transport)
			}
		}
		return transports
	}
	if !reaches(c.Local) {
		t.Fatal("outline is not reached")
	}
	for _, used := range over() {
		if used == "relay" {
			t.Errorf("connections over %v, want a direct one alone", over())
		}
	}
	// Nobody listens at the direct address any more.
	c.Reach.Reach[0].Endpoints = []document.Addresses{{agenttest.RefusingTCP(t)}}
	c.acceptLaptop(t)
	if !reaches(c.Local) {
		t.Fatal("outline is not reached through the relay")
	}
}

// TestUplinkRenewed checks that a host makes its uplinks anew with a renewed SVID, over either
// transport.
func TestUplinkRenewed(t *testing.T) {
	for _, over := range []document.Transport{document.OverQUIC, document.OverTCP} {
		t.Run(string(over), func(t *testing.T) {
			throughRelays(t, 1)
			agenttest.Transport = over
			defer func() { agenttest.Transport = document.AnyTransport }()
			c := newCluster(t, agenttest.Echo(t))
			c.start(t)
			made := func() (n int64) {
				for _, h := range report(t, c.Relays[0]).Handshakes {
					if h.Caller == ursula {
						n += h.Count
					}
				}
				return n
			}
			kit.Eventually(t, "an uplink", func() bool { return made() > 0 })
			time.Sleep(100 * time.Millisecond) // over TCP, until all that wait are made; less only makes the test easier
			before := made()
			c.Ursula.Deliver(c.CA, ursula, time.Hour)
			kit.Eventually(t, "an uplink with the new SVID", func() bool { return made() > before })
			if !reaches(c.Local) {
				t.Error("outline is not reached")
			}
		})
	}
}

// TestRelayLimit checks that a relay limits the connections of a node.
func TestRelayLimit(t *testing.T) {
	throughRelays(t, 1)
	c := newCluster(t, agenttest.Echo(t))
	gate := c.Relays[0]
	doc, err := gate.Layout.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	f := doc.Manifest().Forwarder
	f.Relay.Limits.Connections = 1
	gate.Accept(f, f.Relay.ID)
	kit.Eventually(t, "the relay to have its limit", func() bool {
		m := report(t, gate).Manifest
		return m != nil && m.Serial == gate.Serial
	})
	c.start(t)
	conn := dial(t, c.Local)
	if err := agenttest.Ping(conn); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, c.Local)
	refusals(t, gate, "over-limit", 1)
}
