package ingress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
)

// service is a service behind an ingress with rules. It decodes paths as leniently as any service
// may, and records the requests that no rule lets through.
type service struct {
	*httptest.Server
	mu       sync.Mutex
	breaches []string
}

func newService(t *testing.T, port string, closed ...string) *service {
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, path := range lenient(r.RequestURI) {
			for _, prefix := range closed {
				if path == prefix || strings.HasPrefix(path, prefix+"/") {
					s.mu.Lock()
					s.breaches = append(s.breaches, r.RequestURI)
					s.mu.Unlock()
				}
			}
		}
		if r.Header.Get("Upgrade") == "websocket" {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
				conn.Close()
			}
			return
		}
		w.Header().Set("Strict-Transport-Security", "max-age=0")
		switch r.URL.Path {
		case "/slow":
			time.Sleep(4 * time.Second)
		case "/post":
			_, _ = io.Copy(io.Discard, r.Body)
		}
		fmt.Fprintf(w, "%s %s upgrade=%s client=%s", port, r.RequestURI, r.Header.Get("Upgrade"), r.Header.Get("X-Forwarded-For"))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) at() netip.AddrPort { return netip.MustParseAddrPort(s.Listener.Addr().String()) }

func (s *service) intact(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, target := range s.breaches {
		t.Errorf("%q reached the service", target)
	}
	s.breaches = nil
}

// lenient returns the paths that some service may find in a request target.
func lenient(target string) (all []string) {
	p, _, _ := strings.Cut(target, "?")
	for range 3 {
		for _, version := range []string{p, strings.ReplaceAll(p, `\`, "/"), strings.ReplaceAll(strings.ReplaceAll(p, "\xc0\xaf", "/"), "\xc0\xae", ".")} {
			whole, _, _ := strings.Cut(version, "#")
			query, _, _ := strings.Cut(whole, "?")
			zero, _, _ := strings.Cut(query, "\x00")
			var plain []string
			for segment := range strings.SplitSeq(zero, "/") {
				segment, _, _ = strings.Cut(segment, ";")
				plain = append(plain, strings.Trim(segment, " \t\r\n"))
			}
			cleaned := path.Clean("/" + strings.ToLower(strings.Join(plain, "/")))
			all = append(all, cleaned, strings.TrimRight(cleaned, "."), strings.TrimSuffix(cleaned, path.Ext(cleaned)))
		}
		if decoded, err := url.PathUnescape(p); err == nil {
			p = decoded
		}
	}
	return all
}

var ruled = document.PublicRules{
	Paths: []document.PathRule{
		{Path: "/admin", From: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("2001:db8::/32")}},
		{Path: "/admin/health", From: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}},
		{Path: "/local", From: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		{Path: "/metrics", Deny: true},
		{Path: "/ws", Port: "ws"},
	},
	HSTS: 31536000, MaxBody: 1, Timeout: 2,
}

// ingress is a proxy with names that have rules.
type ingress struct {
	started
	http, https int
	roots       *x509.CertPool
	main, ws    *service
}

func newIngress(t *testing.T, start func(*testing.T, int, int) started) *ingress {
	ports := kit.Ports(2)
	i := &ingress{started: start(t, ports[0], ports[1]), http: ports[0], https: ports[1]}
	i.start(t)
	i.main = newService(t, "main", "/metrics", "/ws")
	i.ws = newService(t, "ws", "/metrics", "/admin")
	crt, key, roots := certificate(t, "wiki.example", "home.example", "none.example", "free.example", "www.example")
	i.roots = roots
	site := func(name string, rules document.PublicRules) Site {
		return Site{Name: name, Upstream: i.main.at(), Rules: rules, Ports: map[string]netip.AddrPort{"ws": i.ws.at()}, Certificate: crt, Key: key, Digest: "1"}
	}
	from := func(network string) document.PublicRules {
		return document.PublicRules{From: []netip.Prefix{netip.MustParsePrefix(network)}}
	}
	www := site("www.example", document.PublicRules{HSTS: 60})
	www.Redirect = "wiki.example"
	s := Sites{All: []Site{
		site("free.example", document.PublicRules{}), site("home.example", from("127.0.0.0/8")), site("none.example", from("192.168.0.0/16")), site("wiki.example", ruled), www,
	}}
	kit.Eventually(t, "the proxy accepts rules", func() bool {
		_, err := i.Apply(t.Context(), s)
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	settles(t, "it serves", func() bool { return i.get(t, "wiki.example", "/").StatusCode == 200 })
	return i
}

// raw sends bytes to a port of the proxy, over TLS for a server name, and returns the answer. The
// status is 0 if there is none.
func (i *ingress) raw(t *testing.T, name, request string) *http.Response {
	t.Helper()
	var conn net.Conn
	var err error
	if name == "" {
		conn, err = net.Dial("tcp", local(i.http))
	} else {
		conn, err = tls.Dial("tcp", local(i.https), &tls.Config{RootCAs: i.roots, ServerName: name})
	}
	none := &http.Response{Body: http.NoBody, Header: http.Header{}}
	if err != nil {
		return none
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(kit.Patience))
	_, _ = io.WriteString(conn, request)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return none
	}
	b := new(bytes.Buffer)
	_, _ = io.Copy(b, resp.Body)
	resp.Body = io.NopCloser(b)
	return resp
}

func (i *ingress) get(t *testing.T, name, target string, headers ...string) *http.Response {
	t.Helper()
	return i.raw(t, name, "GET "+target+" HTTP/1.1\r\nHost: "+name+"\r\nConnection: close\r\n"+strings.Join(append(headers, ""), "\r\n")+"\r\n")
}

// h2 sends a request over HTTP/2 with any pseudo-headers, and returns the status, "" for none.
func (i *ingress) h2(t *testing.T, fields ...string) (status string) {
	t.Helper()
	conn, err := tls.Dial("tcp", local(i.https), &tls.Config{RootCAs: i.roots, ServerName: "wiki.example", NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(kit.Patience))
	_, _ = io.WriteString(conn, http2.ClientPreface)
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = f.WriteSettings()
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for n := 0; n < len(fields); n += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[n], Value: fields[n+1]})
	}
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return ""
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			return frame.PseudoValue("status")
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return ""
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = f.WriteSettingsAck()
			}
		}
	}
}

func eachProxy(t *testing.T, test func(*testing.T, *ingress)) {
	for name, start := range map[string]func(*testing.T, int, int) started{"nginx": newNginx, "caddy": newCaddy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newIngress(t, start))
		})
	}
}

// TestRules checks what a stranger at 127.0.0.1 gets for each path and name.
func TestRules(t *testing.T) {
	t.Parallel()
	eachProxy(t, func(t *testing.T, i *ingress) {
		for _, c := range []struct {
			name, target string
			status       int
			port         string
		}{
			{"wiki.example", "/", 200, "main"},
			{"wiki.example", "/?x=/admin/../%2e%5c;//", 200, "main"},
			{"wiki.example", "/administrator", 200, "main"},
			{"wiki.example", "/admin-panel", 200, "main"},
			{"wiki.example", "/a/admin", 200, "main"},
			{"wiki.example", "/wiki/Was%20ist%20%C3%BC%3F", 200, "main"},
			{"wiki.example", "/admin", 403, ""},
			{"wiki.example", "/admin?x", 403, ""},
			{"wiki.example", "/admin/", 403, ""},
			{"wiki.example", "/admin/users/1", 403, ""},
			{"wiki.example", "/admin.json", 403, ""},
			{"wiki.example", "/admin/healthy", 403, ""},
			{"wiki.example", "/admin/health", 200, "main"},
			{"wiki.example", "/admin/health/x?y", 200, "main"},
			{"wiki.example", "/local", 200, "main"},
			{"wiki.example", "/metrics", 403, ""},
			{"wiki.example", "/metrics/x", 403, ""},
			{"wiki.example", "/ws", 200, "ws"},
			{"wiki.example", "/ws/a?b", 200, "ws"},
			{"wiki.example", "/ws.js", 200, "main"},
			{"home.example", "/admin", 200, "main"},
			{"none.example", "/", 403, ""},
			{"free.example", "/a//b/..;/%2f%5C%25", 200, "main"},
		} {
			if _, rules, _ := strings.Cut(c.name, "wiki"); rules != "" && !strings.Contains(c.target, "%") {
				at, _, _ := strings.Cut(c.target, "?")
				d := ruled.At(at)
				if d.Allows(netip.MustParseAddr("127.0.0.1")) != (c.status == 200) {
					t.Errorf("%s: the rules decide %+v, want %d", c.target, d, c.status)
				}
			}
			resp := i.get(t, c.name, c.target)
			b, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != c.status || c.status == 200 && !strings.HasPrefix(string(b), c.port+" "+c.target+" ") {
				t.Errorf("%s%s: %d %.80q, want %d from %s", c.name, c.target, resp.StatusCode, b, c.status, c.port)
			}
			if age := resp.Header.Values("Strict-Transport-Security"); c.name == "wiki.example" && !slices.Equal(age, []string{"max-age=31536000"}) {
				t.Errorf("%s%s: Strict-Transport-Security is %q", c.name, c.target, age)
			}
		}
		post := func(size int) int {
			return i.raw(t, "wiki.example", fmt.Sprintf("POST /post HTTP/1.1\r\nHost: wiki.example\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size))).StatusCode
		}
		if few, many := post(1<<20), post(1<<20+1); few != 200 || many != 413 {
			t.Errorf("a body of 1 MiB: %d, one byte more: %d", few, many)
		}
		if slow := i.get(t, "wiki.example", "/slow").StatusCode; slow != 504 && slow != 502 {
			t.Errorf("a service that takes too long: %d", slow)
		}
	})
}

// TestSmuggling checks that rules hold however a request is written.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	eachProxy(t, func(t *testing.T, i *ingress) {
		refused := func(what string, status int) {
			t.Helper()
			if status >= 200 && status < 400 {
				t.Errorf("%s: answered with %d", what, status)
			}
		}
		targets := []string{
			"/Admin", "/ADMIN/users", "/aDmIn", "/METRICS",
			"/%61dmin", "/admi%6e", "/%61%64%6D%69%6E/x", "/metric%73",
			"/%2561dmin", "/admin%252f", "/%25252561dmin", "/admin%2fx", "/admin%2Fx", "/x%2f..%2fadmin", "/%2fadmin", "/admin%2f",
			"/x/../admin", "/./admin", "/x/./../admin", "/admin/.", "/admin/./x", "/admin/health/../users", "/admin/health/..", "/admin/health/.",
			"/x/%2e%2e/admin", "/%2e/admin", "/x/.%2e/admin", "/x/%2E./admin", "/admin/health/%2e%2e/users", "/admin/health/..%2f", "/ws/../metrics", "/ws/%2e%2e/admin",
			"//admin", "///admin", "/x//../admin", "/admin//", "//metrics", "/ws//../../metrics", "/.//admin",
			`/\admin`, `/x\..\admin`, `\admin`, "/%5cadmin", "/%5Cadmin", "/x%5c..%5cadmin", `/admin\x`, "/admin%5cx",
			"/admin;x", "/admin;x=/y", "/;/admin", "/x;/../admin", "/admin/health;/../users", "/..;/admin", "/x/..;/admin", "/admin%3bx", "/%3b/admin",
			"/admin#x", "/#/../admin", "/admin%23", "/admin%3f", "/admin%3Fx", "/admin/health/..%3f", "/metrics%3fx",
			"/admin%20", "/%20admin", "/admin%09", "/admin%00", "/admin%0a", "/admin%0d%0a", "/%0aadmin", "/metrics%00.png", "/admin.", "/admin.json", "/admin%2ejson", "/metrics.",
			"/%c0%afadmin", "/x/%c0%ae%c0%ae/admin", "/%u0061dmin", "/%xadmin", "/admin%", "/admin%zz", "/x/\xc0\xae./admin",
			"admin", "?/admin", "/?/../admin x", "*", "", "http:admin", "x:/admin",
			"http://wiki.example/admin", "https://wiki.example/admin", "HTTP://WIKI.EXAMPLE/admin", "http://wiki.example//admin", "http://wiki.example/x/../admin", "http://wiki.example:443/metrics", "http://x@wiki.example/admin", "http://free.example@wiki.example/metrics", "ftp://wiki.example/admin", "//wiki.example/admin",
			"http://wiki.example\\/admin", "http://wiki.example/%61dmin",
		}
		for _, target := range targets {
			for _, host := range []string{"wiki.example", "WIKI.example", "wiki.example:443"} {
				resp := i.raw(t, "wiki.example", "GET "+target+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
				refused(fmt.Sprintf("%q at %s", target, host), resp.StatusCode)
			}
		}
		for _, target := range targets {
			status := i.h2(t, ":method", "GET", ":scheme", "https", ":authority", "wiki.example", ":path", target)
			if strings.HasPrefix(status, "2") || strings.HasPrefix(status, "3") {
				t.Errorf("HTTP/2, %q: %s", target, status)
			}
		}
		if status := i.h2(t, ":method", "GET", ":scheme", "https", ":authority", "wiki.example", ":path", "/x"); status != "200" {
			t.Errorf("HTTP/2 to an open path: %q: this test sees nothing", status)
		}
		for _, fields := range [][]string{
			{":method", "GET", ":scheme", "https", ":authority", "none.example", ":path", "/x", "host", "free.example"},
			{":method", "GET", ":scheme", "https", ":authority", "wiki.example", ":path", "/metrics", "host", "free.example"},
			{":method", "GET", ":scheme", "https", ":path", "/metrics", "host", "wiki.example"},
			{":method", "GET", ":scheme", "https", ":authority", "wiki.example", ":path", "/x", ":path", "/metrics"},
			{":method", "GET", ":scheme", "https", ":authority", "wiki.example", ":path", "/x HTTP/1.1\r\nHost: wiki.example\r\n\r\nGET /metrics"},
			{":method", "GET /metrics HTTP/1.1\r\nx:", ":scheme", "https", ":authority", "wiki.example", ":path", "/x"},
			{":method", "CONNECT", ":authority", "wiki.example"},
			{":method", "CONNECT", ":protocol", "websocket", ":scheme", "https", ":authority", "wiki.example", ":path", "/metrics"},
		} {
			if status := i.h2(t, fields...); strings.HasPrefix(status, "2") {
				t.Errorf("HTTP/2, %q: %s", fields, status)
			}
		}
		for _, request := range []string{
			"GET /metrics HTTP/1.1\r\nHost: wiki.example\r\nHost: free.example\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: none.example\r\nHost: free.example\r\n\r\n",
			"GET /metrics HTTP/1.1\r\nHost: free.example, wiki.example\r\n\r\n",
			"GET /metrics HTTP/1.1\r\nHost : wiki.example\r\n\r\n",
			"GET /metrics HTTP/1.1\r\nHost:\r\n\r\n",
			"GET /metrics HTTP/1.1\r\nHost: wiki.example.\r\n\r\n",
			"GET /metrics HTTP/1.1\r\nHost: wiki.example/free.example\r\n\r\n",
			"GET /metrics HTTP/1.1\r\nHost: free.example@wiki.example\r\n\r\n",
			"GET http://wiki.example/metrics HTTP/1.1\r\nHost: free.example\r\n\r\n",
			"GET http://none.example/ HTTP/1.1\r\nHost: free.example\r\n\r\n",
			"GET /metrics\r\n\r\n",
			"GET /metrics HTTP/1.0\r\nHost: wiki.example\r\n\r\n",
			"GET  /metrics HTTP/1.1\r\nHost: wiki.example\r\n\r\n",
			"GET\t/metrics HTTP/1.1\r\nHost: wiki.example\r\n\r\n",
			"GET / HTTP/1.1\r\n Host: wiki.example\r\nHost: none.example\r\n\r\n",
			"CONNECT wiki.example:443 HTTP/1.1\r\nHost: wiki.example\r\n\r\n",
			"CONNECT /metrics HTTP/1.1\r\nHost: wiki.example\r\n\r\n",
			"POST /metrics HTTP/1.1\r\nHost: wiki.example\r\nX-HTTP-Method-Override: GET\r\nContent-Length: 0\r\n\r\n",
			"GET /metrics HTTP/1.1\r\nHost: wiki.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		} {
			refused(fmt.Sprintf("%q", request), i.raw(t, "wiki.example", request).StatusCode)
		}
		// No header changes the address or the path that rules see.
		var claims []string
		for _, name := range append([]string{"X-Forwarded-For", "X-Real-IP"}, strangersClaims...) {
			claims = append(claims, name+": 192.168.0.1")
		}
		claims = append(claims, "X-Original-URL: /metrics", "X-Rewrite-URL: /metrics")
		refused("a claimed address", i.get(t, "wiki.example", "/admin", claims...).StatusCode)
		refused("a claimed address at a name", i.get(t, "none.example", "/", claims...).StatusCode)
		// A second request in the body or after an upgrade is none.
		for _, upgrade := range [][]string{{"h2c"}, {"h2c, websocket"}, {"websocket", "h2c"}, {"h2c", "websocket"}, {"HTTP/2.0"}, {"TLS/1.0"}, {"other"}} {
			headers := []string{"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"}
			for _, u := range upgrade {
				headers = append(headers, "Upgrade: "+u)
			}
			request := "GET /x HTTP/1.1\r\nHost: wiki.example\r\nConnection: Upgrade, HTTP2-Settings\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
			resp := i.raw(t, "wiki.example", request)
			if b, _ := io.ReadAll(resp.Body); resp.StatusCode == 200 && !strings.Contains(string(b), " upgrade= ") {
				t.Errorf("upgrade %q: %.200s", upgrade, b)
			}
		}
		if resp := i.raw(t, "wiki.example", "GET /ws HTTP/1.1\r\nHost: wiki.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); resp.StatusCode != 101 {
			t.Errorf("a WebSocket at its path: %d", resp.StatusCode)
		}
		random := rand.New(rand.NewPCG(1, 2))
		for range 400 {
			target := mutated(random, []string{"/metrics", "/metrics/x", "/x/../metrics", "/ws/../metrics", "/admin/health/../../metrics"}[random.IntN(5)])
			_ = i.get(t, "wiki.example", target)
		}
		i.main.intact(t)
		i.ws.intact(t)
	})
}

// mutated writes a path in another way that some service may understand.
func mutated(r *rand.Rand, target string) string {
	var b strings.Builder
	for n, c := range []byte(target) {
		switch k := r.IntN(24); {
		case k == 0 && n > 0, k < 6 && c == '.', k < 4 && c == '/' && n > 0:
			fmt.Fprintf(&b, "%%%02x", c)
		case k == 1 && n > 0:
			fmt.Fprintf(&b, "%%25%02X", c)
		case k == 2:
			b.WriteString(strings.ToUpper(string(c)))
		case k == 4 && c == '/':
			b.WriteString([]string{"//", "/./", `\`, `/\`, "/;/", "/x/../", "/%2e/", "/;a=b/", "/x/%2e%2e/", "/%c0%ae/"}[r.IntN(10)])
		case k == 5 && n > 0:
			b.WriteString([]string{";", "%00", "%09", "%20", "#", "%23", "%3f", "%3b"}[r.IntN(8)])
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// TestRedirects checks the names that are redirected, and those that the ingress does not serve.
func TestRedirects(t *testing.T) {
	t.Parallel()
	eachProxy(t, func(t *testing.T, i *ingress) {
		plain := func(host, target string) *http.Response {
			return i.raw(t, "", "GET "+target+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
		}
		for what, resp := range map[string]*http.Response{"https": i.get(t, "www.example", "/a/%2F?b=c&d"), "http": plain("www.example", "/a/%2F?b=c&d")} {
			if to := resp.Header.Get("Location"); resp.StatusCode != 308 || to != "https://wiki.example/a/%2F?b=c&d" {
				t.Errorf("%s: %d to %q", what, resp.StatusCode, to)
			}
		}
		if age := i.get(t, "www.example", "/").Header.Get("Strict-Transport-Security"); age != "max-age=60" {
			t.Errorf("Strict-Transport-Security of a name that is redirected: %q", age)
		}
		if resp := plain("wiki.example", "/admin"); resp.StatusCode != 308 || resp.Header.Get("Location") != "https://wiki.example/admin" {
			t.Errorf("http of a name with rules: %d to %q", resp.StatusCode, resp.Header.Get("Location"))
		}
		// A redirect never leaves the name.
		for _, target := range []string{"http://www.example.evil.example/", "http://www.example?.evil.example", ".evil.example", "x:.evil.example/", "@evil.example", "//evil.example", `/\evil.example`, "http:.evil.example"} {
			for what, resp := range map[string]*http.Response{"https": i.get(t, "www.example", target), "http": plain("www.example", target)} {
				u, err := url.Parse(resp.Header.Get("Location"))
				if err != nil || u.Host != "" && u.Host != "wiki.example" {
					t.Errorf("%s, %q: to %q", what, target, resp.Header.Get("Location"))
				}
			}
		}
		resp := plain("secret.example", "/")
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 404 || string(b) != unknownName {
			t.Errorf("a name that is not served: %d %q", resp.StatusCode, b)
		}
	})
}
