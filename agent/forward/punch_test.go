package forward_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// meet lets hosts learn each other's address. A hidden service's host listens on loopback alone.
func (n *natted) meet(caller, service bool) {
	n.Reach.Meet, n.Publish.Meet = caller, service
	if !service {
		n.Publish.Listen = []string{fmt.Sprintf("127.0.0.1:%d", forwarderPort)}
	}
	n.AcceptLaptop()
	n.AcceptUrsula()
}

// opened returns the number of streams that Laptop has opened to outline over a transport, and
// whether there is such a connection.
func (n *natted) opened(t *testing.T, over document.Transport) (streams int64, any bool) {
	t.Helper()
	for _, row := range report(t, n.Laptop).PeerConnections {
		if row.Direction == telemetry.Out && row.Target == outline && row.Transport == over {
			streams, any = streams+row.Opened, true
		}
	}
	return streams, any
}

func (n *natted) direct(t *testing.T) bool {
	t.Helper()
	_, any := n.opened(t, transport.Punched)
	return any
}

// wantNAT checks which NAT Ursula has found.
func (n *natted) wantNAT(t *testing.T, want transport.NAT) {
	t.Helper()
	kit.Eventually(t, "the kind of NAT", func() bool { return report(t, n.Ursula).NAT == want })
}

// TestPunched checks that two hosts behind NATs connect directly soon after they have begun through a
// relay, that open streams stay where they are, and that new ones return to a relay when nothing
// passes directly any more.
func TestPunched(t *testing.T) {
	n := newNatted(t, "")
	n.meet(true, true)
	n.startAll(t)
	kept := n.dial(t)
	began := time.Now()
	if err := agenttest.Ping(kept); err != nil {
		t.Fatal(err)
	}
	t.Logf("answered after %s", time.Since(began))
	kit.Eventually(t, "a direct connection", func() bool { return n.direct(t) })
	t.Logf("direct after %s", time.Since(began))
	before, _ := n.opened(t, transport.Relayed)
	for range 3 {
		if !n.reaches(t) {
			t.Fatal("outline is not reached")
		}
	}
	if after, _ := n.opened(t, transport.Relayed); after != before {
		t.Errorf("%d streams were opened through relays while there was a direct connection", after-before)
	}
	if err := agenttest.Ping(kept); err != nil {
		t.Errorf("the relayed stream: %v", err)
	}
	if used := report(t, n.Laptop).RelayedTo; len(used) != 1 || used[0].Target != outline || used[0].Path != "direct (punched)" {
		t.Errorf("paths in use: %+v", used)
	}
	n.wantNAT(t, transport.SameNAT)

	// Only one direction is cut.
	n.nats[1].NFT("table ip cut { chain forward { type filter hook forward priority -1; ip saddr 198.51.100.11 meta l4proto udp drop; }; }")
	began = time.Now()
	// A stream that has sent something before the silence was noticed may be reset.
	kit.Eventually(t, "outline to be reached", func() bool { return n.reaches(t) })
	if took := time.Since(began); took > leaveBound {
		t.Errorf("reached after %s, want at most %s", took, leaveBound)
	}
	if err := agenttest.Ping(kept); err != nil {
		t.Errorf("the relayed stream: %v", err)
	}
	kit.Eventually(t, "the direct path to be forgotten", func() bool { return !n.direct(t) })
}

// TestNotPunched checks which hosts stay behind relays.
func TestNotPunched(t *testing.T) {
	for name, test := range map[string]struct {
		mode            string
		caller, service bool
		nat             transport.NAT
		why             string
	}{
		"symmetric NATs":   {"fully-random", true, true, transport.OtherNAT, "gives no address"},
		"a hidden service": {"", true, false, transport.SomeNAT, "gives no address"},
		"a hidden caller":  {"", false, true, transport.SameNAT, "this host is hidden"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNatted(t, test.mode)
			n.meet(test.caller, test.service)
			n.startAll(t)
			n.wantNAT(t, test.nat)
			time.Sleep(time.Second) // until Ursula has told the relays
			for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
				if !n.reaches(t) {
					t.Error("outline is not reached")
				}
				if n.direct(t) {
					t.Fatalf("paths: %q, want relays alone", slices.Sorted(slices.Values(n.paths(t))))
				}
			}
			if used := report(t, n.Laptop).RelayedTo; len(used) != 1 || !strings.HasPrefix(used[0].Path, "by gate") || !strings.Contains(used[0].Why, test.why) {
				t.Errorf("paths in use: %+v, want one by a relay, because %s", used, test.why)
			}
		})
	}
}

// TestPunchedAgain checks that a caller that has changed networks without an open connection connects
// directly again, long before the time after which it is tried anyway.
func TestPunchedAgain(t *testing.T) {
	n := newNatted(t, "")
	n.meet(true, true)
	n.startAll(t)
	n.wantDirect(t)
	n.move()
	began := time.Now()
	time.Sleep(5 * time.Second) // until the connection counts as silent
	n.wantDirect(t)
	if took := time.Since(began); took > punchRetry/2 {
		t.Errorf("direct after %s, want much less than %s", took, punchRetry)
	}
}

// punchRetry is the time after which a direct connection is tried again in the same network.
const punchRetry = time.Minute
