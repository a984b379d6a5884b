package transport_test

import (
	"errors"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestEndpointThatRefusesIsAvoided checks that after a refusal the next stream goes to the other
// endpoint.
func TestEndpointThatRefusesIsAvoided(t *testing.T) {
	ca := kit.NewCA()
	var bad, good server
	bad.start(t, host(t, "raishan", kit.NewCA(), outline))
	good.start(t, host(t, "ursula", ca, outline))
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *hostdir.SVIDSet { return laptop })
	r := route(t, outline, bad.addr, good.addr)
	for range 3 {
		if err := try(t, p, r); err != nil {
			t.Error(err)
		}
	}
	if n := good.accepted.Load(); n != 1 {
		t.Errorf("%d connections to the good endpoint, want 1", n)
	}
}

func TestEndpointThatIsNoLongerListed(t *testing.T) {
	ca := kit.NewCA()
	var before, now server
	before.start(t, host(t, "raishan", ca, outline))
	now.start(t, host(t, "ursula", ca, outline))
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *hostdir.SVIDSet { return laptop })
	for _, addr := range []string{before.addr, now.addr} {
		if err := try(t, p, route(t, outline, addr)); err != nil {
			t.Error(err)
		}
	}
	if before.accepted.Load() != 1 || now.accepted.Load() != 1 {
		t.Error("the connection to the old endpoint was used on")
	}
}

// mortal starts a server and a pool of a caller. kill ends the server silently, again starts the
// next one.
func mortal(t *testing.T) (p *transport.Pool, r transport.Route, kill, again func()) {
	t.Helper()
	ca := kit.NewCA()
	ursula, laptop := host(t, "ursula", ca, outline), host(t, "laptop", ca, alice)
	s := &server{addr: agenttest.Loopback().String(), resetKey: &quic.StatelessResetKey{1}}
	s.start(t, ursula)
	next := &server{addr: s.addr, resetKey: s.resetKey}
	return pool(t, func() *hostdir.SVIDSet { return laptop }), route(t, outline, s.addr), func() { s.ln.Close() }, func() { next.start(t, ursula) }
}

// TestWaitingForAKilledServer checks that a caller that waits and sends nothing learns of the end
// by a reset, although its keep-alive packets are too small for a stateless reset. If the server is
// away for longer, the connection has migrated meanwhile.
func TestWaitingForAKilledServer(t *testing.T) {
	for name, migrates := range map[string]bool{"back at once": false, "back after the connection migrated": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, r, kill, again := mortal(t)
			st, err := p.Open(t.Context(), r, wire.TCP)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Release()
			if err := st.Answer(t.Context()); err != nil {
				t.Fatal(err)
			}
			kit.Settled(p.Packets) // whatever was on the way has come; less only makes the test easier
			kill()
			if migrates {
				kit.Eventually(t, "the connection to migrate", p.Migrates)
			}
			again()
			st.SetReadDeadline(time.Now().Add(kit.Patience))
			_, err = st.Read(make([]byte, 1))
			var reset *quic.StatelessResetError
			if !errors.As(err, &reset) { // else the connection ends as idle
				t.Errorf("%v, want a reset", err)
			}
		})
	}
}

// TestKilledServer checks that peers of a server that vanished silently and came back connect again
// because of a reset, and not of the idle timeout.
func TestKilledServer(t *testing.T) {
	p, r, kill, again := mortal(t)
	if err := try(t, p, r); err != nil {
		t.Fatal(err)
	}
	kill()
	again()
	var reset *quic.StatelessResetError
	if err := try(t, p, r); err != nil && !errors.As(err, &reset) { // learns that the connection is gone
		t.Errorf("%v, want a reset", err)
	}
	if err := try(t, p, r); err != nil {
		t.Fatal(err)
	}
}
