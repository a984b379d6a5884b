package forward_test

import (
	"testing"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestTransportToRelays checks that the transport of a relay in a manifest is used by callers, by
// other relays and for uplinks, although the relays also listen for the other transport.
func TestTransportToRelays(t *testing.T) {
	throughRelays(t, 2)
	c := newCluster(t, agenttest.Echo(t))
	overTCP := func(f *document.Forwarder, relay string) {
		r := f.Relays[relay]
		r.Transport = document.OverTCP
		f.Relays[relay] = r
	}
	gate := c.Relays[0]
	doc, err := gate.Layout.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	f := doc.Manifest().Forwarder
	overTCP(&f, "gate2")
	gate.Accept(f, f.Relay.ID)
	kit.Eventually(t, "the relay to have its manifest in force", func() bool {
		m := report(t, gate).Manifest
		return m != nil && m.Serial == gate.Serial
	})
	overTCP(&c.Reach, "gate1")
	overTCP(&c.Publish, "gate2")
	c.AcceptLaptop()
	c.AcceptUrsula()
	c.start(t)
	c.wantUplinks(t, 1)
	if !reaches(c.Local) {
		t.Fatal("outline is not reached")
	}
	for _, u := range report(t, c.Ursula).Uplinks {
		if u.Transport != document.OverTCP {
			t.Errorf("the uplink uses %s, want tcp", u.Transport)
		}
	}
	for _, hop := range []struct {
		from   *agenttest.Host
		target spiffe.ID
	}{{c.Laptop, kit.ID("vertex/gate1")}, {gate, kit.ID("vertex/gate2")}} {
		n := 0
		for _, row := range report(t, hop.from).PeerConnections {
			if row.Direction != telemetry.Out || row.Target != hop.target {
				continue
			}
			if n++; row.Transport != document.OverTCP {
				t.Errorf("%s calls %s over %s, want tcp", hop.from.Name, hop.target, row.Transport)
			}
		}
		if n == 0 {
			t.Errorf("%s has no connection to %s", hop.from.Name, hop.target)
		}
	}
}
