package ingress

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/acmetest"
)

// TestEnsure checks that a proxy outside the cluster serves the names that needs request, and that
// each name belongs to a single need.
func TestEnsure(t *testing.T) {
	t.Parallel()
	ports := kit.Ports(2)
	n := newNginx(t, ports[0], ports[1])
	n.start(t)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "from ", r.Host) }))
	defer backend.Close()
	dir := t.TempDir()
	e := &Ensure{File: filepath.Join(dir, "names.json"), Certificates: filepath.Join(dir, "certificates"), Proxy: n.Proxy, Poll: 100 * time.Millisecond, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	l, err := net.Listen("unix", filepath.Join(dir, "proxy.sock"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", l.Addr().String())
	}}}
	ensure := func(need, name, upstream string) string {
		t.Helper()
		resp, err := client.Post("http://proxy/proxy/ensure", "application/json",
			strings.NewReader(fmt.Sprintf(`{"key":"k","service":"spiffe://demo.flor/service/wiki","need":%q,"request":{"name":%q,"upstream":%q},"secret":"s"}`, need, name, upstream)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	at := backend.Listener.Addr().String()
	for range 2 {
		if got := ensure("a", "wiki.example", at); got != `{"values":{"name":"wiki.example"}}` {
			t.Error(got)
		}
	}
	for _, c := range [][4]string{
		{"b", "wiki.example", at, `"kind":"denied"`},
		{"b", "x;}", at, `"kind":"invalid"`},
		{"b", "other.example", "127.0.0.1:1; }", `"kind":"invalid"`},
		{"", "other.example", at, `"kind":"invalid"`},
	} {
		if got := ensure(c[0], c[1], c[2]); !strings.Contains(got, c[3]) {
			t.Errorf("%q: %s, want %s", c, got, c[3])
		}
	}
	get := func(scheme string, port int) (int, string) {
		req, err := http.NewRequest(http.MethodGet, scheme+"://"+local(port)+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "wiki.example"
		resp, err := acmetest.Client(filepath.Join(e.Certificates, "wiki.example", fileCertificate), "wiki.example").Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	kit.Eventually(t, "it answers without a certificate that there is none", func() bool { status, _ := get("http", ports[0]); return status == 503 })
	if err := os.MkdirAll(filepath.Join(e.Certificates, "wiki.example"), 0o700); err != nil {
		t.Fatal(err)
	}
	acmetest.Certificate(t, filepath.Join(e.Certificates, "wiki.example", fileCertificate), filepath.Join(e.Certificates, "wiki.example", fileKey))
	kit.Eventually(t, "it serves with one", func() bool { _, body := get("https", ports[1]); return body == "from wiki.example" })
}
