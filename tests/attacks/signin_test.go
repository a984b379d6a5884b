package attacks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/florete/florete/tests/local"
)

// TestSignIn attacks the sign-in pages of the issuer on host p, as an identity that may reach
// the service auth.
func TestSignIn(t *testing.T) {
	wiki := url.Values{"client_id": {"wiki.demo.flor.rete"}, "redirect_uri": {"http://wiki.demo.flor.rete/callback"},
		"response_type": {"code"}, "scope": {"openid"}, "state": {"s"},
		"code_challenge": {strings.Repeat("x", 43)}, "code_challenge_method": {"S256"}}
	with := func(name, value string) url.Values {
		v := url.Values{name: {value}}
		for n, have := range wiki {
			if n != name {
				v[n] = have
			}
		}
		return v
	}
	denied := func(code string) local.Decision { return local.Decision{Kind: "oidc", Decision: "denied", Code: code} }
	run(t, []attack{
		{
			name: "a wrong password",
			try: func(t *testing.T, c *cluster) error {
				b := c.browser(t)
				return b.signIn(b.begin(wiki), "bob@demo.flor", "guess")
			},
			refusal: "do not match",
			row:     denied("wrong-password"),
		},
		{
			name: "guessing a password",
			try: func(t *testing.T, c *cluster) (err error) {
				b := c.browser(t)
				page := b.begin(wiki)
				for i := 0; i < 12 && (err == nil || strings.Contains(err.Error(), "do not match")); i++ {
					err = b.signIn(page, "alice@demo.flor", fmt.Sprint("guess ", i))
				}
				return err
			},
			refusal: "Too many wrong passwords",
			row:     denied("slowed"),
		},
		{
			name: "a sign-in that another browser began",
			try: func(t *testing.T, c *cluster) error {
				return c.browser(t).signIn(c.browser(t).begin(wiki), "bob@demo.flor", password)
			},
			refusal: "another browser",
		},
		{
			name: "a form on another site",
			try: func(t *testing.T, c *cluster) error {
				b := c.browser(t)
				page := b.begin(wiki)
				b.origin = "http://wiki.demo.flor.rete"
				return b.signIn(page, "bob@demo.flor", password)
			},
			refusal: "another site",
		},
		{
			name: "another name for the issuer",
			try: func(t *testing.T, c *cluster) error {
				b := c.browser(t)
				b.host = "evil.example"
				_, err := b.get("/auth/local?" + wiki.Encode())
				return err
			},
			refusal: "This is http://auth.demo.flor.rete",
		},
		{
			name: "a code challenge without a method",
			try: func(t *testing.T, c *cluster) error {
				without := with("state", "s")
				without.Del("code_challenge_method")
				_, err := c.browser(t).get("/auth/local?" + without.Encode())
				return err
			},
			refusal: "error=invalid_request",
		},
		{
			name: "no code challenge, of a client with a secret",
			try: func(t *testing.T, c *cluster) error {
				without := with("state", "s")
				without.Del("code_challenge")
				without.Del("code_challenge_method")
				_, err := c.browser(t).get("/auth/local?" + without.Encode())
				return err
			},
			refusal: "error=invalid_request",
		},
		{
			name: "a long state",
			try: func(t *testing.T, c *cluster) error {
				_, err := c.browser(t).get("/auth/local?" + with("state", strings.Repeat("x", 3000)).Encode())
				return err
			},
			refusal: "want one of at most 2048",
		},
		{
			name: "a guessed client secret",
			try: func(t *testing.T, c *cluster) error {
				_, err := c.browser(t).post("/token", url.Values{"grant_type": {"authorization_code"}, "code": {"x"},
					"client_id": {"wiki.demo.flor.rete"}, "client_secret": {"guess"}})
				return err
			},
			refusal: "invalid_client",
			row:     denied("invalid_client"),
		},
	})
}

// TestHandshake attacks the port of provider p with handshakes of other protocols than TLS 1.3.
func TestHandshake(t *testing.T) {
	dial := func(t *testing.T, c *cluster) net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", c.client(t, c.c, "cert").Provider.Addresses[0])
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	run(t, []attack{
		{
			name: "TLS 1.2",
			try: func(t *testing.T, c *cluster) error {
				conn := dial(t, c)
				defer conn.Close()
				return tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
			},
			refusal: "protocol version",
			row:     local.Decision{Decision: "denied", Code: "handshake", Message: "unsupported versions"},
		},
		{
			name: "plain HTTP",
			try: func(t *testing.T, c *cluster) error {
				conn := dial(t, c)
				defer conn.Close()
				if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: p\r\n\r\n"); err != nil {
					return err
				}
				b, err := io.ReadAll(conn)
				return errors.Join(err, errors.New(string(b)))
			},
			refusal: "400 Bad Request",
			row:     local.Decision{Decision: "denied", Code: "handshake", Message: "HTTP request to an HTTPS server"},
		},
	})
}

// browser is an HTTP client that visits the issuer's pages as a browser does. It does not follow
// redirects to a service.
type browser struct {
	*testing.T
	*http.Client
	host, origin string
}

func (c *cluster) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	pages := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, c.loopback+".0.1:5556")
	}
	return &browser{T: t, Client: &http.Client{
		Jar: jar, Transport: &http.Transport{DialContext: pages, DisableKeepAlives: true},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if r.URL.Host != "auth.demo.flor.rete" {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}}
}

// get requests a page. It returns the page or the refusal. A redirect that contains a code is not a
// refusal.
func (b *browser) get(path string) (string, error) { return b.send(http.MethodGet, path, nil) }

func (b *browser) post(path string, form url.Values) (string, error) {
	return b.send(http.MethodPost, path, form)
}

func (b *browser) send(method, path string, form url.Values) (string, error) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, "http://auth.demo.flor.rete"+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if b.origin != "" {
		r.Header.Set("Origin", b.origin)
	}
	if r.Host = "auth.demo.flor.rete"; b.host != "" {
		r.Host = b.host
	}
	resp, err := b.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	to := resp.Header.Get("Location")
	if resp.StatusCode == http.StatusOK || to != "" && !strings.Contains(to, "error=") {
		return string(body), nil
	}
	return "", fmt.Errorf("%s %s %s", resp.Status, to, body)
}

var action = regexp.MustCompile(`<form method="post" action="([^"]+)"`)

// begin begins a sign-in with the given parameters. It returns the address to which the form is
// sent.
func (b *browser) begin(q url.Values) string {
	b.Helper()
	page, err := b.get("/auth/local?" + q.Encode())
	m := action.FindStringSubmatch(page)
	if err != nil || m == nil {
		b.Fatalf("no form: %s, %v", page, err)
	}
	return html.UnescapeString(m[1])
}

func (b *browser) signIn(form, email, password string) error {
	b.Helper()
	_, err := b.post(form, url.Values{"login": {email}, "password": {password}})
	return err
}
