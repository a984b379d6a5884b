package outside

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPermits checks which hosts an address may name, with http and with https.
func TestPermits(t *testing.T) {
	written := []string{"login.example.org", "auth.demo.flor.rete", "localhost", "127.0.0.2", "10.1.1.1", "::1", "169.254.1.1"}
	for _, c := range []struct {
		host, at    string
		http, https bool
	}{
		{"login.example.org", "192.0.2.1", true, true},
		{"login.example.org", "2001:db8::1", true, true},
		{"login.example.org", "127.0.0.1", false, false},
		{"login.example.org", "127.92.1.9", false, false},
		{"login.example.org", "::1", false, false},
		{"login.example.org", "::ffff:127.0.0.1", false, false},
		{"login.example.org", "64:ff9b::7f00:1", false, false},
		{"login.example.org", "64:ff9b::a9fe:a9fe", false, false},
		{"login.example.org", "2002:a9fe:a9fe::1", false, false},
		{"login.example.org", "169.254.169.254", false, false},
		{"login.example.org", "::ffff:169.254.169.254", false, false},
		{"login.example.org", "fd00:ec2::254", false, false},
		{"login.example.org", "100.100.100.200", false, false},
		{"login.example.org", "168.63.129.16", false, false},
		{"login.example.org", "fe80::1%eth0", false, false},
		{"login.example.org", "224.0.0.1", false, false},
		{"login.example.org", "ff02::1", false, false},
		{"login.example.org", "0.0.0.0", false, false},
		{"login.example.org", "::", false, false},
		{"login.example.org", "255.255.255.255", false, false},
		{"login.example.org", "10.1.1.1", false, true},
		{"login.example.org", "192.168.1.1", false, true},
		{"login.example.org", "fd12::1", false, true},
		{"login.example.org", "100.64.0.1", false, true},
		{"auth.demo.flor.rete", "127.92.1.9", true, true},
		{"auth.demo.flor.rete", "169.254.169.254", false, false},
		{"other.demo.flor.rete", "127.92.1.9", false, false},
		{"localhost", "127.0.0.1", true, true},
		{"127.0.0.2", "127.0.0.2", true, true},
		{"127.0.0.3", "127.0.0.3", false, false},
		{"10.1.1.1", "10.1.1.1", true, true},
		{"10.1.1.2", "10.1.1.2", false, true}, // by a server that proves the address
		{"::1", "::1", true, true},
		{"169.254.1.1", "169.254.1.1", true, true},
		{"169.254.1.2", "169.254.1.2", false, false},
	} {
		for scheme, want := range map[string]bool{"http": c.http, "https": c.https} {
			d := &dialer{private: scheme == "https"}
			if got := d.permits(c.host, netip.MustParseAddr(c.at), slices.Contains(written, c.host)); got != want {
				t.Errorf("%s at %s by %s: %v, want %v", c.host, c.at, scheme, got, want)
			}
		}
	}
}

// TestClient checks that requests and redirects go only to the declared origins, and that no
// request is sent to a name that leads to an address that only this host can reach.
func TestClient(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "secret") }))
	defer inside.Close()
	var lead string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, lead, http.StatusFound)
		case "/here":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/long":
			io.WriteString(w, strings.Repeat("x", maxBody+10))
		default:
			io.WriteString(w, "hello")
		}
	}))
	defer server.Close()
	lead = inside.URL + "/latest/meta-data"
	get := func(written, at string) (string, error) {
		c, err := Config{}.Client(written)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Get(at)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return string(b), err
	}
	for _, path := range []string{"", "/here"} {
		if got, err := get(server.URL, server.URL+path); err != nil || got != "hello" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if got, err := get(server.URL, server.URL+"/long"); err != nil || len(got) != maxBody {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for _, at := range []string{server.URL + "/away", inside.URL} {
		if got, err := get(server.URL, at); err == nil || !strings.Contains(err.Error(), "want one to") {
			t.Errorf("%s: %q, %v", at, got, err)
		}
	}
	secure := httptest.NewTLSServer(inside.Config.Handler)
	defer secure.Close()
	anywhere, err := Config{Anywhere: true, TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig}.Client(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := anywhere.Get(secure.URL); err == nil || !strings.Contains(err.Error(), "no address for a server of others") {
		t.Errorf("another port of the address that is written: %v, %v", resp, err)
	}
	// A name that resolves to loopback, as after rebinding: this machine's own.
	u, err := url.Parse(inside.URL)
	if err != nil {
		t.Fatal(err)
	}
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{hostname, "ip6-localhost", "localhost.localdomain", "localhost4"} {
		if found, err := net.LookupHost(name); err != nil || !netip.MustParseAddr(found[0]).IsLoopback() {
			continue
		}
		if got, err := get("http://"+name+":"+u.Port(), "http://"+name+":"+u.Port()); err == nil || !strings.Contains(err.Error(), "no address for a server of others") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, bad := range []string{"", "ftp://example.org", "https://", "login.example.org"} {
		if _, err := (Config{}).Client(bad); err == nil {
			t.Errorf("%q is an address", bad)
		}
	}
}
