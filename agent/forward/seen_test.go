package forward_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// scrape returns the metrics of a host's agent, as who calls it host gets them.
func scrape(t *testing.T, h *agenttest.Host, host string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: kit.Patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return net.Dial("unix", status.MetricsBeside(h.Socket()))
	}}}
	res, err := client.Get("http://" + host + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// TestMetrics checks every metric for one connection that is served and one that is refused, at
// both ends.
func TestMetrics(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	conn := dial(t, c.Local)
	if err := agenttest.Ping(conn); err != nil {
		t.Fatal(err)
	}
	refusedAs(t, c, bob)
	for h, wants := range map[*agenttest.Host][]string{
		c.Laptop: {
			`florete_info{cluster="demo",host="laptop",version="`,
			`florete_running 1`,
			`florete_connections{caller="user/alice",direction="out",port="",target="service/outline"} 1`,
			`florete_connections_total{caller="user/alice",direction="out",port="",target="service/outline"} 1`,
			`florete_sent_bytes_total{caller="user/alice",direction="out",port="",target="service/outline"} 1`,
			`florete_received_bytes_total{caller="user/alice",direction="out",port="",target="service/outline"} 1`,
			`florete_open_seconds_count{direction="out",port="",target="service/outline"} 1`,
			`florete_peer_connections{caller="user/alice",direction="out",target="service/outline",transport="quic"} 1`,
			`florete_peer_streams{caller="user/alice",direction="out",target="service/outline",transport="quic"} 1`,
			`florete_handshakes_total{caller="user/alice",direction="out",target="service/outline",transport="quic"} 1`,
			`florete_refusals_total{caller="user/bob",direction="out",port="",reason="denied",target="service/outline"} 1`,
			`process_open_fds `,
		},
		c.Ursula: {
			`florete_sent_bytes_total{caller="user/alice",direction="in",port="",target="service/outline"} 1`,
			`florete_open_seconds_bucket{direction="in",port="",target="service/outline",le="+Inf"} 1`,
			`florete_handshakes_total{caller="user/alice",direction="in",target="service/outline",transport="quic"} 1`,
			`florete_refusals_total{caller="",direction="in",port="",reason="denied",target=""} 1`,
		},
	} {
		kit.Eventually(t, "metrics of "+h.Name, func() bool {
			_, page := scrape(t, h, "agent")
			for _, want := range wants {
				if !strings.Contains(page, "\n"+want) {
					t.Logf("%s: no %s", h.Name, want)
					return false
				}
			}
			return true
		})
	}
	if info, err := os.Stat(status.MetricsBeside(c.Laptop.Socket())); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", info.Mode(), err)
	}
	for host, want := range map[string]int{"127.0.0.1:9464": 200, "localhost": 200, "evil.example": 421} {
		if got, _ := scrape(t, c.Laptop, host); got != want {
			t.Errorf("requested as %s: status %d, want %d", host, got, want)
		}
	}
}

// TestMetricsPublished checks that callers with a role can read the metrics by the service's name.
func TestMetricsPublished(t *testing.T) {
	c := newCluster(t, "")
	c.Publish.Publish[0].Upstream = "unix:" + status.MetricsBeside(c.Ursula.Socket())
	c.AcceptUrsula()
	c.start(t)
	for host, want := range map[string]int{"outline.demo.flor.rete": 200, "outline.demo.flor.rete:9464": 200, "evil.example": 421} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.Local+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != want || want == 200 && !strings.Contains(string(b), `host="ursula"`) {
			t.Errorf("%s: %s: %.200s", host, res.Status, b)
		}
	}
}

// refusedAs connects over SOCKS as an identity that is not allowed.
func refusedAs(t *testing.T, c *cluster, id spiffe.ID) {
	t.Helper()
	if _, code := socksDial(t, c.SOCKS[id], "outline.demo.flor.rete", c.port(t)); code == 0 {
		t.Fatalf("%s was let through", id)
	}
}

// lines is a file of lines with several writers.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) entries(t *testing.T) (all []telemetry.Access) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := json.NewDecoder(bytes.NewReader(l.b.Bytes())); d.More(); {
		var e telemetry.Access
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// TestAccessLog checks the line for each connection that has ended, with the reason, and that there
// are none if the log is off.
func TestAccessLog(t *testing.T) {
	var log lines
	c := newCluster(t, agenttest.Echo(t))
	c.Publish.Publish[0].AccessLog = document.AccessFull
	c.AcceptUrsula()
	runWith(t, forward.Config{Layout: c.Ursula.Layout, Socket: c.Ursula.Socket(), Access: &log})
	run(t, c.Laptop)
	c.running = true
	kit.Eventually(t, "laptop to run", func() bool { return report(t, c.Laptop).State == "running" })
	ended := func(end func(*net.TCPConn)) telemetry.Access {
		t.Helper()
		had := len(log.entries(t))
		conn := dial(t, c.Local)
		if err := agenttest.Ping(conn); err != nil {
			t.Fatal(err)
		}
		end(conn)
		kit.Eventually(t, "a line", func() bool { return len(log.entries(t)) == had+1 })
		return log.entries(t)[had]
	}
	e := ended(func(c *net.TCPConn) { c.CloseWrite(); io.Copy(io.Discard, c); c.Close() })
	if e.Caller != alice || e.Service != outline || e.Sent != 1 || e.Received != 1 || e.Duration <= 0 || e.End != "done" ||
		e.Transport != document.OverQUIC || e.Upstream != c.Publish.Publish[0].Upstream || !strings.HasPrefix(e.From, "127.0.0.1:") {
		t.Errorf("in order: %+v", e)
	}
	if e := ended(rst); e.End != "reset-by-caller" {
		t.Errorf("reset: %+v", e)
	}
	e = ended(func(*net.TCPConn) {
		c.Publish.Publish[0].Allow = nil
		c.acceptUrsula(t)
	})
	if e.End != "denied" {
		t.Errorf("denied: %+v", e)
	}
}
