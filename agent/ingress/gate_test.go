package ingress

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/gatetest"
)

// gated is a proxy in front of a service whose visitors must sign in.
type gated struct {
	ingress
	issuer   *gatetest.Issuer
	seen     atomic.Int64 // requests that reached the service
	past     atomic.Int64 // those of a site with a gate, which tell nobody's name
	clients  []GateSite
	stopGate func()
}

func newGated(t *testing.T, start func(*testing.T, int, int) started) *gated {
	ports := kit.Ports(2)
	g := &gated{ingress: ingress{started: start(t, ports[0], ports[1]), http: ports[0], https: ports[1]}}
	g.start(t)
	g.issuer = gatetest.Start(t, []string{"writers"}, map[string][]string{
		"wiki":  {"https://wiki.example" + CallbackPath, "https://notes.example" + CallbackPath},
		"other": {"https://other.example" + CallbackPath},
	})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.seen.Add(1)
		if r.Host != "open.example" && r.Header.Get("X-Forwarded-User") == "" {
			g.past.Add(1)
		}
		if r.Header.Get("Upgrade") == "websocket" {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
				conn.Close()
			}
			return
		}
		if r.URL.Path == "/refuses" {
			http.Error(w, "the service itself refuses", http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+r.RequestURI+" "+string(body)+"\n")
		_ = r.Header.Write(w)
	}))
	t.Cleanup(backend.Close)
	crt, key, roots := certificate(t, "wiki.example", "notes.example", "other.example", "open.example", "late.example")
	g.roots = roots
	s := Sites{Gate: filepath.Join(t.TempDir(), "gate.sock")}
	rules := document.PublicRules{From: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Paths: []document.PathRule{
		{Path: "/metrics", Deny: true}, {Path: "/office", From: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}},
	}}
	for name, service := range map[string]string{"wiki.example": "wiki", "notes.example": "wiki", "other.example": "other", "open.example": "", "late.example": "late"} {
		site := Site{Name: name, Upstream: netip.MustParseAddrPort(backend.Listener.Addr().String()), Gated: service != "", Certificate: crt, Key: key, Digest: "1"}
		if name == "notes.example" {
			site.Rules = rules
		}
		s.All = append(s.All, site)
		if service != "" {
			front := GateSite{Name: name, Service: kit.ID("service/" + service).String(), Session: time.Hour, Own: true}
			if of := g.issuer.Delivered[service]; of != nil {
				front.Client = &GateClient{Issuer: of["issuer"], ID: of["clientId"], Secret: of["clientSecret"]}
			}
			g.clients = append(g.clients, front)
		}
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	handler := NewGate(log)
	handler.Set(g.clients)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Config{Socket: s.Gate, Log: log}.serveGate(ctx, handler) }()
	g.stopGate = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(g.stopGate)
	kit.Eventually(t, "the proxy accepts the sites", func() bool {
		_, err := g.Apply(t.Context(), s)
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	settles(t, "it serves", func() bool { return g.get(t, "open.example", "/").StatusCode == 200 })
	return g
}

// visitor returns a browser to which the public names are those of the proxy. It follows no
// redirects.
func (g *gated) visitor() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err)
	}
	return &http.Client{
		Jar: jar, Timeout: kit.Patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: g.roots},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if strings.HasSuffix(address, ".example:443") {
					address = local(g.https)
				}
				return new(net.Dialer).DialContext(ctx, network, address)
			},
		},
	}
}

// open requests a URL and returns the status, the text and the redirect.
func open(t *testing.T, v *http.Client, method, url, body string, headers ...string) (status int, text, location string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header[headers[i]] = append(req.Header[headers[i]], headers[i+1])
	}
	resp, err := v.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header.Get("Location")
}

// signIn signs a person in at a page, and returns the page to which the browser returns.
func signIn(t *testing.T, v *http.Client, page, email string) (location string) {
	t.Helper()
	status, text, to := open(t, v, "GET", page, "")
	if status != http.StatusSeeOther {
		t.Fatalf("%s: %d %s, want a redirect to the issuer", page, status, text)
	}
	back := gatetest.SignIn(t, v, to, email)
	status, text, location = open(t, v, "GET", back, "")
	if status != http.StatusSeeOther {
		t.Fatalf("%.60s: %d %s", back, status, text)
	}
	return location
}

func eachGated(t *testing.T, test func(*testing.T, *gated)) {
	for name, start := range map[string]func(*testing.T, int, int) started{"nginx": newNginx, "caddy": newCaddy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newGated(t, start))
		})
	}
}

// TestGate signs a person in with the real issuer through each proxy. It checks what the service
// learns about the person, and that nothing reaches the service without a session.
func TestGate(t *testing.T) {
	t.Parallel()
	eachGated(t, func(t *testing.T, g *gated) {
		v := g.visitor()
		was := g.seen.Load()
		if status, _, _ := open(t, v, "POST", "https://wiki.example/page", "text"); status != http.StatusUnauthorized {
			t.Errorf("a POST without a session: %d, want 401", status)
		}
		if status, _, _ := open(t, v, "GET", "https://wiki.example/page", "", "Sec-Fetch-Mode", "cors"); status != http.StatusUnauthorized {
			t.Errorf("a script without a session: %d, want 401", status)
		}
		if status, _, _ := open(t, v, "GET", "https://late.example/", ""); status != http.StatusServiceUnavailable {
			t.Errorf("a site without credentials: %d, want 503", status)
		}
		if at := signIn(t, v, "https://wiki.example/page?a=b&c=%2Fd", gatetest.Alice); at != "/page?a=b&c=%2Fd" {
			t.Errorf("the sign-in returns to %q", at)
		}
		if g.seen.Load() != was {
			t.Error("requests without a session reached the service")
		}
		status, text, _ := open(t, v, "POST", "https://wiki.example/page?x=%2F", "text",
			"X-Forwarded-User", "root", "X-Forwarded-Email", "root@example", "X-Forwarded-Groups", "admins", "X-Forwarded-Preferred-Username", "root",
			"X_Forwarded_User", "root", "x-forwarded-groups", "admins", "X-Florete-User", "root")
		if status != 200 || !strings.HasPrefix(text, "POST /page?x=%2F text\n") {
			t.Errorf("%d %s", status, text)
		}
		for _, line := range []string{"X-Forwarded-Email: alice@demo.flor\r\n", "X-Forwarded-Preferred-Username: alice\r\n", "X-Forwarded-Groups: writers\r\n", "X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-User: "} {
			if strings.Count(text, line) != 1 {
				t.Errorf("the service does not learn %q once:\n%s", line, text)
			}
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, "_") && strings.Contains(line, "root") || strings.HasPrefix(line, "X-Forwarded") && (strings.Contains(line, "root") || strings.Contains(line, "admins")) {
				t.Errorf("the service believes a stranger: %s", line)
			}
		}
		named := "X-Forwarded-User, X-Forwarded-Email, X-Forwarded-Preferred-Username, X-Forwarded-Groups, X-Forwarded-For, X-Real-IP"
		for _, connection := range []string{"Connection: " + named, "Connection: Upgrade, " + named + "\r\nUpgrade: odd"} {
			b, err := io.ReadAll(g.get(t, "wiki.example", "/page", connection, "Cookie: "+cookies(v, "wiki.example")).Body)
			if err != nil {
				t.Fatal(err)
			}
			for name := range strings.SplitSeq(named, ", ") {
				if !strings.Contains(string(b), http.CanonicalHeaderKey(name)+": ") {
					t.Errorf("%s: the service does not learn %s:\n%s", connection, name, b)
				}
			}
		}
		if status, text, _ := open(t, v, "GET", "https://wiki.example/refuses", ""); status != 401 || !strings.Contains(text, "the service itself") {
			t.Errorf("401 of the service: %d %s", status, text)
		}
		if resp := g.get(t, "wiki.example", "/ws", "Upgrade: websocket", "Connection: Upgrade"); resp.StatusCode == http.StatusSwitchingProtocols {
			t.Error("a WebSocket without a session")
		}
		if resp := g.get(t, "wiki.example", "/ws", "Upgrade: websocket", "Connection: Upgrade", "Cookie: "+cookies(v, "wiki.example")); resp.StatusCode != http.StatusSwitchingProtocols {
			t.Errorf("a WebSocket with a session: %d", resp.StatusCode)
		}
	})
}

// cookies returns the cookies of a browser for a public name.
func cookies(v *http.Client, name string) string {
	r, err := http.NewRequest("GET", "https://"+name+"/", nil)
	if err != nil {
		panic(err)
	}
	var all []string
	for _, c := range v.Jar.Cookies(r.URL) {
		all = append(all, c.Name+"="+c.Value)
	}
	return strings.Join(all, "; ")
}

// TestGateIsNotSkipped sends requests without a session whose paths, headers or protocol a proxy or
// a service could read differently. None of them may reach the service.
func TestGateIsNotSkipped(t *testing.T) {
	t.Parallel()
	eachGated(t, func(t *testing.T, g *gated) {
		for _, target := range []string{
			"/", "//", "/.florete/callback/../../admin", "/.florete/callback/..%2fadmin", "/.florete/callback%2f..%2fadmin", "/.florete/../admin", "/.florete/check",
			"/.florete/start", "/.florete", "/.florete/", "/.florete/callback/", "/.florete/callback;x", "/.florete//callback", "/.FLORETE/callback", "/%2eflorete/callback",
			"/admin/../.florete/callback", "/check", "/enter", "/start", "/check/../.florete/callback", "/.well-known/acme-challenge/x", "/.florete/sign-out/x", "/.florete/callback?state=x&code=y",
			"https://wiki.example/admin", "https://open.example/admin", "/\\..\\admin", "/%00", "*", "/.florete/callback#/admin", "/ws",
		} {
			for _, headers := range [][]string{
				nil,
				{"X-Florete-User: root", "X-Forwarded-User: root", "X-Original-URL: /", "X-Rewrite-URL: /"},
				{"X-Florete-Target: /", "X-Florete-Method: POST", "X-Florete-Upgrade: websocket"},
				{"Cookie: __Host-florete-session=x; __Host-florete-session=y"},
				{"Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__"},
				{"Upgrade: websocket", "Connection: Upgrade"},
				{"Host: open.example"},
			} {
				g.get(t, "wiki.example", target, headers...)
			}
		}
		g.raw(t, "wiki.example", "POST /admin HTTP/1.1\r\nHost: wiki.example\r\nConnection: close\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: wiki.example\r\n\r\n")
		for _, method := range []string{"HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"} {
			g.raw(t, "wiki.example", method+" /admin HTTP/1.1\r\nHost: wiki.example\r\nConnection: close\r\n\r\n")
		}
		for _, fields := range [][]string{
			{":method", "GET", ":scheme", "https", ":authority", "wiki.example", ":path", "/admin"},
			{":method", "GET", ":scheme", "https", ":authority", "wiki.example", ":path", "/.florete/callback/../admin"},
			{":method", "GET", ":scheme", "http", ":authority", "wiki.example", ":path", "//admin"},
			{":method", "CONNECT", ":scheme", "https", ":authority", "wiki.example", ":path", "/ws", ":protocol", "websocket"},
			{":method", "GET", ":scheme", "https", ":authority", "open.example", ":path", "/admin", "host", "wiki.example"},
		} {
			g.h2(t, fields...)
		}
		if n := g.past.Load(); n > 0 {
			t.Errorf("%d requests reached the service without a session", n)
		}
	})
}

// TestGateAndRules checks that the rules of a site hold before the gate, and that a session of one
// service is not valid for another.
func TestGateAndRules(t *testing.T) {
	t.Parallel()
	eachGated(t, func(t *testing.T, g *gated) {
		v := g.visitor()
		for path, want := range map[string]int{"/metrics": 403, "/office": 403, "/a//b": 400, "/": 303} {
			if status, _, _ := open(t, v, "GET", "https://notes.example"+path, ""); status != want {
				t.Errorf("%s without a session: %d, want %d", path, status, want)
			}
		}
		signIn(t, v, "https://notes.example/page", gatetest.Alice)
		for path, want := range map[string]int{"/metrics": 403, "/office": 403, "/a//b": 400, "/": 200} {
			if status, _, _ := open(t, v, "GET", "https://notes.example"+path, ""); status != want {
				t.Errorf("%s with a session: %d, want %d", path, status, want)
			}
		}
		for _, name := range []string{"other.example", "wiki.example"} {
			resp := g.get(t, name, "/", "Cookie: "+cookies(v, "notes.example"))
			if resp.StatusCode != http.StatusSeeOther {
				t.Errorf("a session of another name at %s: %d", name, resp.StatusCode)
			}
		}
		was := cookies(v, "notes.example")
		if status, text, _ := open(t, v, "GET", "https://notes.example"+SignOutPath, "", "Sec-Fetch-Site", "same-origin"); status != 200 || !strings.Contains(text, "You are signed out") {
			t.Errorf("signing out: %d %s", status, text)
		}
		if resp := g.get(t, "notes.example", "/", "Cookie: "+was); resp.StatusCode != http.StatusSeeOther {
			t.Errorf("the session goes on after the person signed out: %d", resp.StatusCode)
		}
	})
}

// TestGateIsDown checks that nothing reaches the service while the gate does not answer.
func TestGateIsDown(t *testing.T) {
	t.Parallel()
	eachGated(t, func(t *testing.T, g *gated) {
		v := g.visitor()
		signIn(t, v, "https://wiki.example/", gatetest.Alice)
		g.stopGate()
		was := g.seen.Load()
		if status, _, _ := open(t, v, "GET", "https://wiki.example/", ""); status < 500 || g.seen.Load() != was {
			t.Errorf("without the gate: %d", status)
		}
	})
}

// TestGateFromManifest checks which sites a manifest makes, and that a site is closed until the
// credentials of its client are delivered.
func TestGateFromManifest(t *testing.T) {
	t.Parallel()
	layout := hostdir.Layout(t.TempDir())
	m := document.Manifest{Forwarder: document.Forwarder{Reach: []document.Reachable{{
		ID: kit.ID("service/wiki"), TLSName: "wiki.example", TLSAliases: []string{"docs.example"}, Gate: &document.Gate{Need: "oidc--wiki", Session: 3600, Own: true},
	}, {ID: kit.ID("service/open"), TLSName: "open.example"}}}}
	sites, dirs, err := gatesOf(layout, m)
	if err != nil || len(sites) != 2 || len(dirs) != 1 || sites[0].Client != nil || sites[0].Session != time.Hour || !sites[0].Own {
		t.Fatalf("%+v, %q, %v", sites, dirs, err)
	}
	all, _, err := sitesOf(layout, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all.All {
		if s.Gated != (s.Name != "open.example") {
			t.Errorf("%s: gated is %v", s.Name, s.Gated)
		}
	}
	deliver := func(secret string) {
		kit.Swap(hostdir.Current(dirs[0]), map[string][]byte{fileIssuer: []byte("http://auth\n"), fileClientID: []byte("wiki"), fileClientSecret: []byte(secret)})
	}
	deliver(strings.Repeat("s", minSecret))
	if sites, _, err = gatesOf(layout, m); err != nil || sites[1].Client == nil || sites[1].Client.Issuer != "http://auth" {
		t.Errorf("%+v, %v", sites, err)
	}
	deliver("short")
	if _, _, err = gatesOf(layout, m); err == nil || !strings.Contains(err.Error(), "want 32 or more") {
		t.Errorf("a secret that could be guessed: %v", err)
	}
}
