package transport_test

import (
	"errors"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// fits is the size of UDP datagrams that pass a tunnel below another: slightly more than the
// smallest that QUIC needs, and less than the size that it has found to pass.
const fits = 1250

// TestNATForgets covers a NAT that forgets a connection, which continues with another port.
func TestNATForgets(t *testing.T) {
	n := newNetwork(t)
	st, err := n.open(t, document.OverQUIC)
	if err != nil {
		t.Fatal(err)
	}
	exchange(t, st, 1<<20)
	before := n.echo.last.Load().RemoteAddr().String()
	n.forgets.Store(true)
	exchange(t, st, 1<<20)
	kit.Eventually(t, "the forwarder to follow", func() bool { return n.echo.last.Load().RemoteAddr().String() != before })
	finish(t, st)
	if rows := n.table.Rows(); n.rebound.Load() != 1 || len(rows) != 1 {
		t.Errorf("the NAT forgot %d times; %+v", n.rebound.Load(), rows)
	}
}

// TestAnswersComeLate covers a new network in which the first answers of the peer come only after the
// connection has migrated: the peer has then seen packets over both paths, and has no connection ID
// left for the path in use.
func TestAnswersComeLate(t *testing.T) {
	n := newNetwork(t)
	st, err := n.open(t, document.OverQUIC)
	if err != nil {
		t.Fatal(err)
	}
	exchange(t, st, 1<<20)
	kit.Eventually(t, "another path", n.pool.Prepared)
	n.out.Store(1)
	n.forgets.Store(true)
	done := make(chan struct{})
	go func() { defer close(done); exchange(t, st, 1<<20) }()
	kit.Eventually(t, "the connection to migrate", func() bool { return !n.pool.Prepared() })
	n.out.Store(0)
	<-done
	finish(t, st)
}

// TestPacketsBecomeTooLarge covers a path that begins to drop large packets silently, in each
// direction.
func TestPacketsBecomeTooLarge(t *testing.T) {
	for _, c := range []struct {
		name    string
		in, out int64
	}{{"to the forwarder", fits, 0}, {"from the forwarder", 0, fits}, {"both ways", fits, fits}} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			st, err := n.open(t, document.OverQUIC)
			if err != nil {
				t.Fatal(err)
			}
			exchange(t, st, 1<<20)
			kit.Eventually(t, "another path", n.pool.Prepared)
			n.in.Store(c.in)
			n.out.Store(c.out)
			exchange(t, st, 1<<20)
			finish(t, st)
			if got := n.goes(t, document.OverQUIC); got != document.OverQUIC {
				t.Errorf("went over %s", got)
			}
		})
	}
}

// TestSmallPacketsFromTheStart checks that QUIC connects if only packets of its minimum size pass.
func TestSmallPacketsFromTheStart(t *testing.T) {
	n := newNetwork(t)
	n.in.Store(1200)
	n.out.Store(1200)
	if got := n.goes(t, document.AnyTransport); got != document.OverQUIC {
		t.Errorf("went over %s", got)
	}
}

// TestOneDirectionIsDropped checks that TCP takes over long before QUIC detects the loss.
func TestOneDirectionIsDropped(t *testing.T) {
	for name, drop := range map[string]func(*border){
		"to the forwarder":   func(b *border) { b.in.Store(1) },
		"from the forwarder": func(b *border) { b.out.Store(1) },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t)
			old, err := n.open(t, document.AnyTransport)
			if err != nil {
				t.Fatal(err)
			}
			defer old.Release()
			exchange(t, old, 1<<20)
			drop(n.border)
			unanswered, err := n.pool.Open(t.Context(), route(t, outline, n.addr), wire.TCP)
			if err != nil {
				t.Fatal(err)
			}
			if err := unanswered.Answer(t.Context()); !errors.Is(err, transport.ErrLost) { // and not that QUIC ended
				t.Errorf("a stream without answer ended with %v", err)
			}
			unanswered.Release()
			if got := n.goes(t, document.AnyTransport); got != document.OverTCP {
				t.Errorf("went over %s", got)
			}
			if f := n.pool.Fallbacks(); len(f) != 1 || !strings.Contains(f[0].Reason, "over UDP") {
				t.Errorf("fallbacks %+v", f)
			}
		})
	}
}

// TestHostMoves covers a host that loses its address in the middle of a transfer, has none for a
// while, and then another one, to which only the route to the forwarder leads.
func TestHostMoves(t *testing.T) {
	if !agenttest.OwnNetwork(t) {
		return
	}
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	const there, first, second = "10.9.0.1", "10.9.1.1", "10.9.2.1"
	from := func(here string) {
		ip("address", "add", here+"/32", "dev", "lo")
		ip("route", "replace", "local", there, "dev", "lo", "table", "local", "src", here)
	}
	ip("address", "add", there+"/32", "dev", "lo")
	from(first)
	n := newNetworkAt(t, there)
	n.addr = n.echo.quic
	st, err := n.open(t, document.OverQUIC)
	if err != nil {
		t.Fatal(err)
	}
	at := func() string {
		return n.echo.last.Load().RemoteAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().String()
	}
	if got := at(); got != first {
		t.Fatalf("the forwarder is called from %s, want %s", got, first)
	}
	exchange(t, st, 1<<20)
	kit.Eventually(t, "another path", n.pool.Prepared)
	const size = 20 << 20
	done := make(chan struct{})
	go func() { defer close(done); exchange(t, st, size) }()
	ip("address", "del", first+"/32", "dev", "lo")
	kit.Eventually(t, "the host to have no route", func() bool {
		c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(n.addr)))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	kit.Eventually(t, "the connection to count as silent", n.pool.Silent)
	from(second)
	<-done
	finish(t, st)
	if got := at(); got != second {
		t.Errorf("the forwarder is called from %s, want %s", got, second)
	}
}
