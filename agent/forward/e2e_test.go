package forward_test

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// refusals waits until a host has counted n refusals for a reason, and returns the last one.
func refusals(t *testing.T, h *agenttest.Host, reason string, n int64) (detail string, peer string) {
	t.Helper()
	var r status.Report
	kit.Eventually(t, fmt.Sprintf("%s to refuse %q %d times", h.Name, reason, n), func() bool {
		r = report(t, h)
		return r.Refusals[reason] >= n
	})
	for _, x := range r.RecentRefusals {
		if x.Reason == reason {
			detail, peer = x.Detail, x.Peer
		}
	}
	return detail, peer
}

// refused reports whether a process of a user is among a host's last refusals.
func refused(t *testing.T, h *agenttest.Host, reason string, uid uint32) bool {
	t.Helper()
	return slices.ContainsFunc(report(t, h).RecentRefusals, func(r refusal) bool {
		return r.Reason == reason && strings.HasPrefix(r.Detail, fmt.Sprintf("uid %d:", uid))
	})
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(kit.Patience))
	return c.(*net.TCPConn)
}

// reaches reports whether an echo server answers at addr.
func reaches(addr string) bool {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(kit.Patience))
	return agenttest.Ping(c) == nil
}

// wantReset checks that the connection is reset, and not ended.
func wantReset(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, c)
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("connection ended with %v, want a reset", err)
	}
}

// wantRefused checks that a new connection is reset, possibly before it is established.
func wantRefused(t *testing.T, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if errors.Is(err, syscall.ECONNRESET) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(kit.Patience))
	wantReset(t, c)
}

func TestDeniedByTheAllowList(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.Publish.Publish[0].Allow = []document.Allow{{ID: bob}}
	c.acceptUrsula(t)
	c.start(t)
	wantRefused(t, c.Local)
	if _, peer := refusals(t, c.Ursula, "denied", 1); peer != alice.String() {
		t.Errorf("ursula refused %q, want %s", peer, alice)
	}
	if detail, peer := refusals(t, c.Laptop, "denied", 1); peer != alice.String() || !strings.Contains(detail, outline.String()) {
		t.Errorf("laptop counted %q as %q", detail, peer)
	}
}

func TestAllowListByFingerprint(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.Publish.Publish[0].Allow[0].Fingerprint = strings.Repeat("0", 64)
	c.acceptUrsula(t)
	c.start(t)
	wantRefused(t, c.Local)
	refusals(t, c.Ursula, "denied", 1)
}

func TestStrangerCAWithTheSameID(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	stranger := kit.NewCA()
	c.Laptop.Roots = append(c.Laptop.Roots, stranger.RootPEM()) // the laptop itself is fooled
	c.acceptLaptop(t)
	c.Laptop.Deliver(stranger, alice, time.Hour)
	c.start(t)
	wantRefused(t, c.Local)
	if detail, peer := refusals(t, c.Ursula, "bad-certificate", 1); peer != "" || !strings.Contains(detail, "claims to be "+alice.String()) {
		t.Errorf("ursula refused %q: %q", peer, detail)
	}
	refusals(t, c.Laptop, "untrusted", 1)
}

func TestImpostorOfAnotherCA(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	// ursula serves outline with a certificate that only ursula believes in.
	stranger := kit.NewCA()
	c.Ursula.Roots = append(c.Ursula.Roots, stranger.RootPEM())
	c.acceptUrsula(t)
	c.Ursula.Deliver(stranger, outline, time.Hour)
	c.start(t)
	wantRefused(t, c.Local)
	if detail, _ := refusals(t, c.Laptop, "impostor", 1); !strings.Contains(detail, "is not "+outline.String()) {
		t.Errorf("laptop counted %q", detail)
	}
}

func TestExpiredSVID(t *testing.T) {
	t.Run("of the caller", func(t *testing.T) {
		c := newCluster(t, agenttest.Echo(t))
		c.Laptop.Deliver(c.CA, alice, -time.Minute)
		c.start(t)
		wantRefused(t, c.Local)
		refusals(t, c.Laptop, "expired", 1)
	})
	t.Run("of the target", func(t *testing.T) {
		c := newCluster(t, agenttest.Echo(t))
		c.Ursula.Deliver(c.CA, outline, -time.Minute)
		c.start(t)
		wantRefused(t, c.Local)
		refusals(t, c.Ursula, "no-identity", 1)
		refusals(t, c.Laptop, "not-published", 1)
	})
}

func TestNotPublished(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.Publish.Publish = nil
	c.acceptUrsula(t)
	c.start(t)
	wantRefused(t, c.Local)
	refusals(t, c.Ursula, "unknown-name", 1)
	refusals(t, c.Laptop, "not-published", 1)
}

func TestUpstreamRefuses(t *testing.T) {
	c := newCluster(t, agenttest.RefusingTCP(t))
	c.start(t)
	wantRefused(t, c.Local)
	refusals(t, c.Ursula, "upstream-refused", 1)
	refusals(t, c.Laptop, "upstream-refused", 1)
}

func TestAllowListChange(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.Publish.Publish[0].Allow = []document.Allow{{ID: alice}, {ID: bob}}
	c.acceptUrsula(t)
	c.start(t)
	asAlice := dial(t, c.Local)
	asBob, code := socksDial(t, c.SOCKS[bob], "outline.demo.flor.rete", c.port(t))
	if code != 0 {
		t.Fatalf("SOCKS5 as bob: reply %d", code)
	}
	for _, conn := range []net.Conn{asAlice, asBob} {
		if err := agenttest.Ping(conn); err != nil {
			t.Fatal(err)
		}
	}
	c.Publish.Publish[0].Allow = []document.Allow{{ID: alice}}
	c.acceptUrsula(t)
	wantReset(t, asBob)
	if err := agenttest.Ping(asAlice); err != nil {
		t.Fatalf("alice, who is still allowed: %v", err)
	}
	refusals(t, c.Ursula, "denied", 1)
}

// TestAllowListChangeBesideAFault checks that a service that cannot be published does not prevent
// changes of other allow lists, in either direction.
func TestAllowListChangeBesideAFault(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.Publish.Publish[0].Allow = []document.Allow{{ID: alice}, {ID: bob}}
	c.acceptUrsula(t)
	c.start(t)
	asBob, code := socksDial(t, c.SOCKS[bob], "outline.demo.flor.rete", c.port(t))
	if code != 0 || agenttest.Ping(asBob) != nil {
		t.Fatalf("SOCKS5 as bob: reply %d", code)
	}
	c.Publish.Publish[0].Allow = []document.Allow{{ID: alice}}
	c.Publish.Publish = append(c.Publish.Publish, document.Published{ID: agenttest.Ursula, Upstream: "127.0.0.1:1"})
	c.acceptUrsula(t)
	wantReset(t, asBob)
	if !reaches(c.Local) {
		t.Error("alice, who is still allowed, does not reach outline")
	}
	if p := report(t, c.Ursula).Problems; len(p) != 1 || !strings.Contains(p[0], "a node cannot be dialled") {
		t.Errorf("problems %q", p)
	}
}

func TestReachableChange(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.Publish.Publish[0].Allow = []document.Allow{{ID: alice}, {ID: bob}}
	c.acceptUrsula(t)
	c.start(t)
	asAlice := dial(t, c.Local)
	asBob, _ := socksDial(t, c.SOCKS[bob], "outline.demo.flor.rete", c.port(t))
	for _, conn := range []net.Conn{asAlice, asBob} {
		if err := agenttest.Ping(conn); err != nil {
			t.Fatal(err)
		}
	}
	c.Reach.Reach[0].Callers = []spiffe.ID{alice}
	c.acceptLaptop(t)
	wantReset(t, asBob)
	if err := agenttest.Ping(asAlice); err != nil {
		t.Fatalf("alice, who is still allowed: %v", err)
	}
}

// TestRotateThenReconnect would detect a resumed session that skips verification, since the second
// handshake is between the same two processes.
func TestRotateThenReconnect(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	first := dial(t, c.Local)
	if err := agenttest.Ping(first); err != nil {
		t.Fatal(err)
	}
	stranger := kit.NewCA()
	c.Ursula.Roots = []string{stranger.RootPEM(), c.CA.RootPEM()}
	c.Laptop.Roots = []string{stranger.RootPEM(), c.CA.RootPEM()}
	c.acceptUrsula(t)
	c.acceptLaptop(t)
	// The stranger becomes the only root that ursula believes, and has not yet
	// certified alice.
	c.Ursula.Roots = []string{stranger.RootPEM()}
	c.Ursula.Deliver(stranger, ursula, time.Hour)
	c.Ursula.Deliver(stranger, outline, time.Hour)
	c.acceptUrsula(t)
	wantReset(t, first)
	wantRefused(t, c.Local)
	refusals(t, c.Ursula, "bad-certificate", 1)

	c.Laptop.Deliver(stranger, alice, time.Hour)
	kit.Eventually(t, "alice to be let in again", func() bool { return reaches(c.Local) })
}

func TestRotationUnderTraffic(t *testing.T) {
	c := newCluster(t, hello(t))
	c.start(t)
	stop := make(chan struct{})
	var failed, done atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got, err := get(c.Local); err != nil || got != "hello /docs" {
					t.Errorf("request failed: %q, %v", got, err)
					failed.Add(1)
				}
				done.Add(1)
			}
		})
	}
	expiry := func(h *agenttest.Host, id spiffe.ID) time.Time {
		for _, i := range report(t, h).Identities {
			if i.ID == id && i.Expires != nil {
				return *i.Expires
			}
		}
		return time.Time{}
	}
	for i := range 5 {
		before := done.Load()
		lifetime := time.Duration(i+2) * time.Hour
		c.Laptop.Deliver(c.CA, alice, lifetime)
		c.Ursula.Deliver(c.CA, outline, lifetime)
		kit.Eventually(t, "the new SVIDs", func() bool {
			soon := time.Now().Add(lifetime - time.Minute)
			return expiry(c.Laptop, alice).After(soon) && expiry(c.Ursula, outline).After(soon)
		})
		kit.Eventually(t, "traffic", func() bool { return done.Load() > before+20 })
	}
	close(stop)
	wg.Wait()
	if failed.Load() > 0 {
		t.Fatalf("%d of %d requests failed", failed.Load(), done.Load())
	}
}

func TestLargeTransfer(t *testing.T) {
	const size = 8 << 20 // more than the window of a stream grows to
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	conn := dial(t, c.Local)
	conn.SetDeadline(time.Now().Add(kit.Patience))
	sent, received := sha256.New(), sha256.New()
	go func() {
		io.Copy(io.MultiWriter(conn, sent), io.LimitReader(rand.Reader, size))
		conn.CloseWrite()
	}()
	n, err := io.Copy(received, conn)
	if err != nil || n != size {
		t.Fatalf("got %d bytes of %d, %v", n, size, err)
	}
	if string(sent.Sum(nil)) != string(received.Sum(nil)) {
		t.Fatal("what came back is not what was sent")
	}
	for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
		kit.Eventually(t, h.Name+" to count the bytes", func() bool {
			p := report(t, h).Paths
			return len(p) == 1 && p[0].Sent == size && p[0].Received == size && p[0].Live == 0
		})
	}
}

func TestCallerIsNobody(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.Reach.Callers = []document.Caller{{ID: alice, UIDs: []uint32{uint32(os.Getuid()) + 1}}}
	c.acceptLaptop(t)
	c.start(t)
	wantRefused(t, c.Local)
	if detail, _ := refusals(t, c.Laptop, "unknown-caller", 1); !strings.Contains(detail, fmt.Sprintf("uid %d ", os.Getuid())) {
		t.Errorf("counted %q", detail)
	}
	wantRefused(t, c.SOCKS[alice])
	refusals(t, c.Laptop, "not-caller", 1)
}

func TestIdentityMayNotReach(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.Reach.Reach[0].Callers = []spiffe.ID{bob}
	c.acceptLaptop(t)
	c.start(t)
	wantRefused(t, c.Local)
	if detail, _ := refusals(t, c.Laptop, "not-reachable", 1); !strings.Contains(detail, "may not reach") {
		t.Errorf("counted %q", detail)
	}
}
