package forward_test

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// limited starts a cluster with limits of the service, and of alice.
func limited(t *testing.T, upstream string, service, caller document.Limits) *cluster {
	t.Helper()
	c := newCluster(t, upstream)
	c.start(t)
	c.limit(t, service, caller)
	return c
}

// limit puts other limits in force.
func (c *cluster) limit(t *testing.T, service, caller document.Limits) {
	t.Helper()
	c.Publish.Publish[0].Limits = service
	c.Publish.Limits = []document.CallerLimits{{ID: alice, Limits: caller}}
	c.acceptUrsula(t)
}

// overLimit checks that a connection is refused, and that both sides have counted it for the limit
// of whose.
func overLimit(t *testing.T, c *cluster, n int64, whose spiffe.ID) {
	t.Helper()
	wantRefused(t, c.Local)
	if detail, peer := refusals(t, c.Ursula, "over-limit", n); peer != alice.String() || !strings.Contains(detail, whose.Short()+" has") {
		t.Errorf("ursula refused %q: %q", peer, detail)
	}
	refusals(t, c.Laptop, "over-limit", n)
}

func TestConnectionsAreLimited(t *testing.T) {
	c := limited(t, agenttest.Echo(t), document.Limits{Connections: 2}, document.Limits{})
	var open []*net.TCPConn
	more := func() {
		t.Helper()
		open = append(open, dial(t, c.Local))
		for i, conn := range open {
			if err := agenttest.Ping(conn); err != nil {
				t.Fatalf("connection %d: %v", i+1, err)
			}
		}
	}
	more()
	more()
	overLimit(t, c, 1, outline)
	c.limit(t, document.Limits{Connections: 9}, document.Limits{Connections: 3})
	more()
	overLimit(t, c, 2, alice)
	// Open connections stay, and count.
	c.limit(t, document.Limits{Connections: 1}, document.Limits{})
	for i, conn := range open {
		if err := agenttest.Ping(conn); err != nil {
			t.Errorf("connection %d: %v", i+1, err)
		}
	}
	overLimit(t, c, 3, outline)
	for _, conn := range open {
		conn.Close()
	}
	kit.Eventually(t, "a connection to be let in", func() bool { return reaches(c.Local) })
	c.limit(t, document.Limits{}, document.Limits{})
	open = nil
	for range 5 {
		more()
	}
}

func TestOpensAreLimited(t *testing.T) {
	const many, rate = 40, 2
	c := limited(t, agenttest.Echo(t), document.Limits{}, document.Limits{OpensPerSecond: rate})
	began, in := time.Now(), 0
	for range many {
		if reaches(c.Local) {
			in++
		}
	}
	if most := rate*int(time.Since(began)/time.Second+1) + rate; in == 0 || in > most {
		t.Errorf("%d of %d were let in, want 1 to %d", in, many, most)
	}
	refusals(t, c.Laptop, "over-limit", int64(many-in))
	refusals(t, c.Ursula, "over-limit", int64(many-in))
}

// TestBytesAreLimited checks that a limit slows bytes down without losing any, and that a new limit
// applies to open connections.
func TestBytesAreLimited(t *testing.T) {
	const size, rate, burst = 768 << 10, 512 << 10, 64 << 10
	c := limited(t, agenttest.Echo(t), document.Limits{}, document.Limits{})
	conn := dial(t, c.Local)
	data := make([]byte, size)
	rand.Read(data)
	echo := func() time.Duration {
		t.Helper()
		began := time.Now()
		go conn.Write(data)
		got := make([]byte, size)
		if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%v: the echo is another", err)
		}
		return time.Since(began)
	}
	echo()
	for _, of := range []struct{ service, caller document.Limits }{
		{service: document.Limits{BytesPerSecond: rate}},
		{caller: document.Limits{BytesPerSecond: rate}, service: document.Limits{BytesPerSecond: 100 * rate}},
	} {
		c.limit(t, of.service, of.caller)
		// There and back, but for what goes at once and the last chunk of each direction.
		if least, took := (2*size-burst-2*rate/16)*time.Second/rate, echo(); took < least {
			t.Errorf("%+v: %d bytes there and back took %s, want at least %s", of, size, took, least)
		}
	}
	// Streams that wait because of a low rate continue with a higher one.
	c.limit(t, document.Limits{BytesPerSecond: 1000}, document.Limits{})
	go conn.Write(data)
	c.limit(t, document.Limits{}, document.Limits{})
	if _, err := io.ReadFull(conn, make([]byte, size)); err != nil {
		t.Error(err)
	}
}

func TestRequestsAreLimited(t *testing.T) {
	const size, rate, burst = 768 << 10, 512 << 10, 64 << 10
	c, _ := backend(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, size)) })
	c.limit(t, document.Limits{BytesPerSecond: rate}, document.Limits{})
	began := time.Now()
	got, err := get(c.Local)
	if err != nil || len(got) != size {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if least, took := (size-2*burst)*time.Second/rate, time.Since(began); took < least {
		t.Errorf("%d bytes took %s, want at least %s", size, took, least)
	}
}

func TestDatagramsAreLimited(t *testing.T) {
	c, conn := startUDP(t)
	c.limit(t, document.Limits{}, document.Limits{BytesPerSecond: 1000})
	payload := make([]byte, 10_000)
	kit.Eventually(t, "datagrams to be dropped", func() bool {
		conn.Write(payload)
		return report(t, c.Ursula).Paths[0].Dropped > 20
	})
	c.limit(t, document.Limits{}, document.Limits{Connections: 1})
	if err := exchange(conn, []byte("still here")); err != nil {
		t.Error(err)
	}
	other := dialUDP(t, c.Local)
	sendInVain(t, other, []byte("another"))
	refusals(t, c.Laptop, "over-limit", 1)
	refusals(t, c.Ursula, "over-limit", 1)
}
