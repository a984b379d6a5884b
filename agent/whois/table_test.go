package whois_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit/agenttest"
)

// connection is a net.Conn for tests. It has only addresses and carries no data.
type connection struct {
	net.Conn
	from, to netip.AddrPort
}

func (c connection) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.from) }
func (c connection) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.to) }

var (
	from = netip.MustParseAddrPort("127.0.0.1:43210")
	one  = netip.MustParseAddrPort("127.0.0.1:8080")
	two  = netip.MustParseAddrPort("127.0.0.1:8081")
)

func upstreamOf(caller spiffe.ID, uid uint32) whois.Upstream {
	return whois.Upstream{Caller: caller, Service: agenttest.Outline, MayQuery: func(u uint32) bool { return u == uid }}
}

// TestSharedPort checks that an account learns only about its own connections. The kernel may use
// the same port for connections to different services.
func TestSharedPort(t *testing.T) {
	var table whois.Table
	add := func(caller spiffe.ID, uid uint32, to netip.AddrPort) (forget func()) {
		_, forget, err := table.Dial(upstreamOf(caller, uid), func() (net.Conn, error) { return connection{from: from, to: to}, nil })
		if err != nil {
			t.Fatal(err)
		}
		return forget
	}
	lookup := func(uid uint32, to netip.AddrPort) (ids []spiffe.ID) {
		for _, a := range table.Lookup(t.Context(), uid, document.TCP, from, to) {
			ids = append(ids, a.Caller)
		}
		return ids
	}
	forget := add(agenttest.Alice, 1, one)
	add(agenttest.Bob, 2, two)
	for _, c := range []struct {
		uid  uint32
		to   netip.AddrPort
		want int
		is   spiffe.ID
	}{
		{1, netip.AddrPort{}, 1, agenttest.Alice}, {2, netip.AddrPort{}, 1, agenttest.Bob}, {3, netip.AddrPort{}, 0, spiffe.ID{}},
		{0, netip.AddrPort{}, 2, spiffe.ID{}}, {0, two, 1, agenttest.Bob}, {1, two, 0, spiffe.ID{}},
	} {
		got := lookup(c.uid, c.to)
		if len(got) != c.want || c.want == 1 && got[0] != c.is {
			t.Errorf("uid %d, to %v: got %v, want %d, %v", c.uid, c.to, got, c.want, c.is)
		}
	}
	forget()
	forget()
	if got := lookup(0, netip.AddrPort{}); len(got) != 1 || got[0] != agenttest.Bob {
		t.Errorf("got %v, want bob alone", got)
	}
}

// TestAskedBeforeConnected checks that a query waits for a connection that is still being made. A
// query waits only for connections to services of its own account.
func TestAskedBeforeConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table whois.Table
		started := time.Now()
		dial := func(uid uint32, after time.Duration, err error) {
			go table.Dial(upstreamOf(agenttest.Alice, uid), func() (net.Conn, error) {
				time.Sleep(after)
				return connection{from: from, to: one}, err
			})
		}
		dial(1, time.Second, nil)
		dial(1, 10*time.Millisecond, errors.New("refused"))
		dial(2, time.Hour, nil)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got := table.Lookup(ctx, 1, document.TCP, from, one); len(got) != 1 || time.Since(started) > time.Second {
			t.Errorf("got %v after %s", got, time.Since(started))
		}
		if got := table.Lookup(ctx, 3, document.TCP, from, one); len(got) != 0 || time.Since(started) > time.Second {
			t.Errorf("got %v after %s, want nothing at once", got, time.Since(started))
		}
		if got := table.Lookup(ctx, 2, document.TCP, from, one); len(got) != 0 || time.Since(started) < time.Minute {
			t.Errorf("got %v after %s, want nothing when the question ends", got, time.Since(started))
		}
		time.Sleep(2 * time.Hour)
	})
}
