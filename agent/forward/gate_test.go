package forward_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit/agenttest"
)

// behindGate returns a cluster whose service is behind a gate. All processes of Laptop act as the
// given caller. The agents are not running.
func behindGate(t *testing.T, caller spiffe.ID, h http.HandlerFunc) *cluster {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c := newCluster(t, strings.TrimPrefix(s.URL, "http://"))
	c.Publish.Publish[0].Gate = &document.InnerGate{Ingresses: []spiffe.ID{}}
	c.Publish.Publish[0].Allow = []document.Allow{{ID: caller}}
	c.Reach.Callers = []document.Caller{{ID: caller, UIDs: c.Reach.Callers[0].UIDs}}
	c.Reach.Reach[0].Callers = []spiffe.ID{caller}
	c.acceptUrsula(t)
	c.acceptLaptop(t)
	return c
}

// persons returns the headers and trailers that a service could take for the person who calls.
func persons(r *http.Request) (all []string) {
	same := strings.NewReplacer("_", "-", ".", "-")
	for _, headers := range []http.Header{r.Header, r.Trailer} {
		for name, values := range headers {
			switch strings.ToLower(same.Replace(name)) {
			case "x-forwarded-user", "x-forwarded-email", "x-forwarded-preferred-username", "x-forwarded-groups":
				for _, v := range values {
					all = append(all, name+": "+v)
				}
			}
		}
	}
	return all
}

// TestGateNamesUsers checks that each request of alice to a service behind a gate names alice and
// nobody else, whatever she sends.
func TestGateNamesUsers(t *testing.T) {
	var reached atomic.Int64
	c := behindGate(t, alice, func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		got := persons(r)
		if len(got) != 2 || r.Header.Get("X-Forwarded-User") != alice.String() || r.Header.Get("X-Forwarded-Preferred-Username") != alice.Name() {
			t.Errorf("%s %s: the service got %q", r.Method, r.URL, got)
		}
		if r.ProtoMajor != 1 {
			t.Errorf("the service got HTTP/%d", r.ProtoMajor)
		}
		if r.Header.Get("Upgrade") == "websocket" {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			rw.Flush()
			_, _ = io.Copy(conn, io.LimitReader(rw, 5))
			return
		}
		fmt.Fprint(w, r.URL.Path)
	})
	c.start(t)
	claims := []string{
		"",
		"X-Forwarded-User: bob",
		"X-Forwarded-User: bob\r\nX-Forwarded-User: carol",
		"x-forwarded-user: bob\r\nX-FORWARDED-USER: carol",
		"X_Forwarded_User: bob\r\nX.Forwarded.Email: bob@example.org\r\nX_FORWARDED_GROUPS: admins",
		"X-Forwarded-Groups: admins\r\nX-Forwarded-Email: bob@example.org\r\nX-Forwarded-Preferred-Username: bob",
		"Connection: X-Forwarded-User, X-Forwarded-Preferred-Username",
		"Connection: keep-alive, x-forwarded-user\r\nX-Forwarded-User: bob",
	}
	var requests strings.Builder
	for _, claim := range claims {
		fmt.Fprintf(&requests, "GET /page HTTP/1.1\r\nHost: outline\r\n%s\r\n", strings.TrimPrefix(claim+"\r\n", "\r\n"))
	}
	for i, answer := range talk(t, c, requests.String(), len(claims)) {
		if answer != "200 /page" {
			t.Errorf("%q: got %s", claims[i], answer)
		}
	}
	if n := reached.Load(); n != int64(len(claims)) {
		t.Errorf("the service was reached %d times, want %d", n, len(claims))
	}

	forged := "GET /admin HTTP/1.1\r\nHost: outline\r\nX-Forwarded-User: bob\r\n\r\n"
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(forged), forged)
	head := "POST / HTTP/1.1\r\nHost: outline\r\n"
	for _, bytes := range []string{
		head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
		head + "Transfer-Encoding: chunked\r\nTrailer: X-Forwarded-User, X_Forwarded_Email\r\n\r\n0\r\nX-Forwarded-User: bob\r\nX_Forwarded_Email: bob@example.org\r\n\r\n",
		head + "X: y\r\n X-Forwarded-User: bob\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + forged,
		"GET / HTTP/1.1\r\nHost: outline\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n" + forged,
		"CONNECT outline:80 HTTP/1.1\r\nHost: outline\r\n\r\n" + forged,
	} {
		talk(t, c, bytes, unknown)
	}

	p := dial(t, c.Local)
	fmt.Fprint(p, "GET /ws HTTP/1.1\r\nHost: outline\r\nConnection: Upgrade, X-Forwarded-User\r\nUpgrade: websocket\r\nx-forwarded-user: bob\r\n\r\n")
	r := bufio.NewReader(p)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("WebSocket: got %+v, %v", res, err)
	}
	fmt.Fprint(p, "hello")
	if b, err := io.ReadAll(r); err != nil || string(b) != "hello" {
		t.Errorf("WebSocket: got %q, %v", b, err)
	}
}

// TestGateRefuses checks that a caller that is not a user does not reach a service behind a gate,
// and that only the requests of an ingress tell the person themselves. An ingress does not speak for
// strangers who connect to an entry of its host.
func TestGateRefuses(t *testing.T) {
	var last atomic.Value
	c := behindGate(t, laptop, func(w http.ResponseWriter, r *http.Request) {
		last.Store(persons(r))
		fmt.Fprint(w, r.Header.Get("X-Forwarded-Client-Cert"))
	})
	c.start(t)
	published := &c.Publish.Publish[0]
	const forged = "GET / HTTP/1.1\r\nHost: outline\r\nX-Forwarded-User: bob\r\n\r\n"
	ask := func(as string) string {
		t.Helper()
		answers := talk(t, c, forged, 1)
		if len(answers) != 1 {
			t.Fatalf("%s: no answer", as)
		}
		return answers[0]
	}
	refused := fmt.Sprintf("403 Inside the cluster, outline.%s.rete is for users, and %s is not a user.\n", outline.TrustDomain(), laptop.Short())
	if got := ask("a node"); got != refused || last.Load() != nil {
		t.Errorf("a node got %q, and the service %v", got, last.Load())
	}
	refusals(t, c.Ursula, "denied", 1)

	published.Gate.Ingresses = []spiffe.ID{laptop}
	for _, announced := range []document.Announcement{document.Unannounced, document.HTTPHeaders} {
		published.Identity = announced
		c.acceptUrsula(t)
		got := ask("an ingress")
		if names := fmt.Sprint(last.Load()); names != "[X-Forwarded-User: bob]" || !strings.HasPrefix(got, "200 ") {
			t.Errorf("identity %q: an ingress got %q, and the service %s", announced, got, names)
		}
		if strings.Contains(got, laptop.String()) != (announced == document.HTTPHeaders) {
			t.Errorf("identity %q: got %q", announced, got)
		}
	}
	last.Store([]string(nil))
	published.Entrances = []spiffe.ID{laptop}
	c.acceptUrsula(t)
	e := document.Entry{Listen: agenttest.Loopback().String(), ID: outline, Announce: true}
	c.Reach.Entries = []document.Entry{e}
	c.acceptLaptop(t)
	p := dial(t, e.Listen)
	fmt.Fprint(p, forged)
	res, err := http.ReadResponse(bufio.NewReader(p), nil)
	if err != nil || res.StatusCode != http.StatusForbidden || len(last.Load().([]string)) > 0 {
		t.Errorf("at an entry: got %+v, %v, and the service %v", res, err, last.Load())
	}
}
