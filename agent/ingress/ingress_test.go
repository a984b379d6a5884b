package ingress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/florete/florete/activation"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/server"
	providertls "github.com/florete/florete/providers/tls"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/acmetest"
	"github.com/florete/florete/tests/kit/activationtest"
	"github.com/florete/florete/tests/kit/providertest"
	"github.com/florete/florete/tests/program"
)

// cluster is a host that is the ingress for two services. It gets certificates from a provider and
// from a real ACME CA, which validates the names at the ingress.
type cluster struct {
	t        *testing.T
	ca       *acmetest.CA
	https    int
	issuers  *x509.CertPool
	layout   hostdir.Layout
	closure  string
	manifest document.Manifest
	begun    chan struct{} // closed when the service has received the first byte of a body
}

func newCluster(t *testing.T) *cluster {
	ca := acmetest.Start(t, acmetest.Options{})
	c := &cluster{t: t, ca: ca, https: kit.Port(), layout: hostdir.Layout(t.TempDir()), closure: t.TempDir(), begun: make(chan struct{})}
	env := providertest.NewEnv(t, activationtest.Node.Name())
	of := activationtest.NewCluster(t)
	of.CA = env.CA
	c.manifest = of.Manifest()
	env.Policy.Devices[0].SSHHostKey = c.manifest.Identity.SSHHostKey
	env.Runs(providertls.Name, map[string]any{"directory": ca.Directory, "contact": "", "dns": "", "internal": []string{"internal"}}, func(e *providertest.Env) server.AnyKind {
		k := providertls.New(providertls.Config{Store: e.Store, Key: e.Key, Roots: ca.RootsFile, Dial: ca.Dial, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		t.Cleanup(k.Close)
		return server.Any(struct {
			server.Kind[*providertls.Policy]
		}{k})
	})
	need := func(id string, of document.PublicNames, after ...string) document.Need {
		n := document.Need{
			ID: id, Kind: document.KindTLS, For: activationtest.Node, Providers: []string{"forge"}, Request: kit.JSON(of), Generation: 1,
			DependsOn: append([]string{"cert-node"}, after...), OnChange: []string{}, Renew: document.Renew{AtPercent: 66},
			Deliver: document.Deliver{Files: map[string]document.File{fileThumbprint: {Value: "thumbprint", Mode: "0444"}}},
		}
		if len(of.Names) > 0 {
			n.Deliver.Files = map[string]document.File{fileCertificate: {Value: "certificate", Mode: "0444"}, fileKey: {Value: "key", Mode: "0400"}}
		}
		env.Grant(activationtest.Node, id, document.KindTLS, of)
		return n
	}
	c.manifest.Needs = []document.Need{
		c.manifest.Needs[0],
		need("tls", document.PublicNames{Names: []string{}}),
		need("tls-git", document.PublicNames{Names: []string{"git.example"}, Shared: true}, "tls"),
		need("tls-outline", document.PublicNames{Names: []string{"outline.example"}}, "tls"),
	}
	env.Start()
	forge := of.Start("forge")
	t.Cleanup(forge.Stop)
	c.manifest.Providers["forge"] = map[string]document.Provider{
		"cert": c.manifest.Providers["forge"]["cert"], "tls": {ID: env.Provider().ID, Addresses: document.Addresses{"tls:1"}},
	}
	delete(c.manifest.Providers, "spare")
	c.reach("outline.example", c.backend(), false)
	c.reach("git.example", c.grpcBackend(), true)
	kit.Write(c.closure, kit.Document(1, c.manifest))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	pipes := activationtest.Dial(map[string]*activationtest.Provider{"forge": forge})
	go func() {
		defer close(ended)
		_, err := activation.Run(ctx, activation.Config{
			State: c.layout, Closure: c.closure, HostKey: of.HostKey, Undivided: true,
			Notify: func(context.Context, string) error { return nil },
			Report: func(e event.Event) { t.Log(e) },
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if address == "tls:1" {
					return env.Dial(ctx, network, address)
				}
				return pipes(ctx, network, address)
			},
		})
		if err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
	c.issuers = ca.Issuers()
	return c
}

func (c *cluster) reach(name string, at net.Addr, grpc bool) {
	c.manifest.Forwarder.Reach = append(c.manifest.Forwarder.Reach, document.Reachable{
		ID: kit.ID("service/" + strings.TrimSuffix(name, ".example")), Callers: []spiffe.ID{activationtest.Node}, Endpoints: []document.Addresses{{"forge:4610"}},
		Listen: netip.MustParseAddrPort(at.String()), TLSName: name, GRPC: grpc,
	})
}

// backend starts a service that answers each request with the request's headers.
func (c *cluster) backend() net.Addr {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "websocket" {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
			line, _ := rw.ReadString('\n')
			fmt.Fprint(conn, "echo "+line)
			return
		}
		if r.URL.Path == "/headers" {
			_ = r.Header.Write(w)
			return
		}
		fmt.Fprintf(w, "%s %s %s\n", r.Host, r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Forwarded-Proto"))
		if r.Method == http.MethodPost {
			first := make([]byte, 1)
			if _, err := io.ReadFull(r.Body, first); err != nil {
				return
			}
			close(c.begun)
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprintln(w, n+1)
		}
	}))
	c.t.Cleanup(s.Close)
	return s.Listener.Addr()
}

func (c *cluster) grpcBackend() net.Addr {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	s := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if err := grpc.SendHeader(ctx, learned(ctx)); err != nil {
			return nil, err
		}
		return handle(ctx, req)
	}))
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	go func() { _ = s.Serve(l) }()
	c.t.Cleanup(s.Stop)
	return l.Addr()
}

// browser returns an HTTP client that acts as a browser on the internet. It trusts the CA, and
// every name resolves to the ingress.
func (c *cluster) browser(serverName string) *http.Client {
	return &http.Client{
		Timeout:       kit.Patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: c.issuers, ServerName: serverName},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if strings.HasSuffix(address, ":80") {
					return c.ca.Dial(ctx, network, address)
				}
				return new(net.Dialer).DialContext(ctx, network, local(c.https))
			},
		},
	}
}

func (c *cluster) get(serverName, url string) (status int, body string, header http.Header) {
	resp, err := c.browser(serverName).Get(url)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), resp.Header
}

// TestPublicName checks the public name https://outline.example from end to end with each proxy. A
// real CA issues the certificate and validates the name at the ingress. A client on the internet
// reaches published names and nothing else. The proxy is restarted meanwhile.
func TestPublicName(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T, *cluster) started{
		"nginx": func(t *testing.T, c *cluster) started { return newNginx(t, c.ca.HTTPPort, c.https) },
		"caddy": func(t *testing.T, c *cluster) started {
			return newCaddy(t, c.ca.HTTPPort, c.https)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program.Require(t, name)
			c := newCluster(t)
			proxy := start(t, c)
			stop := proxy.start(t)
			ctx, end := context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = Run(ctx, Config{Layout: c.layout, Proxy: proxy, Poll: 300 * time.Millisecond, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
			}()
			t.Cleanup(func() { end(); <-ended })
			up := func() bool { status, _, _ := c.get("", "https://outline.example/"); return status == 200 }
			settles(t, "https://outline.example answers", up)
			settles(t, "https://git.example answers", func() bool { status, _, _ := c.get("", "https://git.example/"); return status != 0 })
			c.published(t)
			c.claimed(t)
			c.refused(t)
			c.grpc(t)
			stop()
			if up() {
				t.Error("it answers without a proxy: this test sees nothing")
			}
			proxy.start(t)
			kit.Eventually(t, "it answers after a restart of the proxy", up)
		})
	}
}

// settles waits until a condition holds for a while. A single success is not enough: old workers of
// nginx accept connections until they learn that newer workers exist.
func settles(t *testing.T, what string, holds func() bool) {
	t.Helper()
	times := 0
	kit.Eventually(t, what, func() bool {
		if times++; !holds() {
			times = 0
		}
		return times == 20
	})
}

func (c *cluster) published(t *testing.T) {
	if _, body, _ := c.get("", "https://outline.example/"); body != "outline.example 127.0.0.1 https\n" {
		t.Errorf("the service learns %q", body)
	}
	if status, _, header := c.get("", "http://outline.example/a?b"); status != 308 || header.Get("Location") != "https://outline.example/a?b" {
		t.Errorf("http: %d to %q", status, header.Get("Location"))
	}
	// A body is passed on while it arrives, whatever its length. False claims about the client are
	// removed.
	out, in := io.Pipe()
	req, err := http.NewRequest(http.MethodPost, "https://outline.example/", out)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = bodySize
	req.Header.Set("X-Forwarded-For", "192.0.2.66")
	go func() {
		_, _ = in.Write([]byte("x"))
		select {
		case <-c.begun:
		case <-time.After(kit.Patience):
			t.Error("the service has nothing of the body before all of it came")
		}
		_, _ = io.Copy(in, io.LimitReader(zeros{}, bodySize-1))
		in.Close()
	}()
	resp, err := c.browser("").Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, _ := io.ReadAll(resp.Body)
	if want := fmt.Sprintf("outline.example 127.0.0.1 https\n%d\n", bodySize); string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	conn, err := tls.Dial("tcp", local(c.https), &tls.Config{RootCAs: c.issuers, ServerName: "outline.example"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /ws HTTP/1.1\r\nHost: outline.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	r := bufio.NewReader(conn)
	ws, err := http.ReadResponse(r, nil)
	if err != nil || ws.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal("no upgrade", ws, err)
	}
	fmt.Fprint(conn, "hello\n")
	if line, err := r.ReadString('\n'); line != "echo hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// refused checks that the ingress refuses names that are not published, both in the TLS handshake
// and in the request.
func (c *cluster) refused(t *testing.T) {
	if status, body, _ := c.get("", "https://secret.example/"); status != 0 {
		t.Errorf("a name that is not published: %d %s", status, body)
	}
	if status, body, _ := c.get("", "http://secret.example/"); status != 404 || body != unknownName {
		t.Errorf("a name that is not published, http: %d %s", status, body)
	}
	if status, body, _ := c.get("outline.example", "https://secret.example/"); status != 421 {
		t.Errorf("a name that is not published, in the handshake of one that is: %d %s, want 421", status, body)
	}
}

func (c *cluster) grpc(t *testing.T) {
	conn, err := grpc.NewClient("passthrough:///"+local(c.https), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: c.issuers, ServerName: "git.example"})), grpc.WithAuthority("git.example"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The certificate of this name may have been delivered last, so nginx may not know the name
	// yet.
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	for name, value := range claims() {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	var header metadata.MD
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true), grpc.Header(&header))
	if err != nil || answer.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("gRPC: %v, %v", answer, err)
	}
	got := map[string][]string{}
	for name, values := range header {
		if name, ok := strings.CutPrefix(name, "learned-"); ok {
			got[http.CanonicalHeaderKey(name)] = values
		}
	}
	unclaimed(t, got)
}

// TestTakenBack checks that the configuration file stays as it was if nginx does not accept the new
// one. The cause may also be a file beside it.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	ports := kit.Ports(2)
	n := newNginx(t, ports[0], ports[1])
	nginx := n.Proxy.(*Nginx)
	n.start(t)
	site := Sites{All: []Site{{Name: "a.example", Upstream: netip.MustParseAddrPort("127.0.0.1:1")}}}
	if changed, err := nginx.Apply(t.Context(), site); err != nil || !changed {
		t.Fatal(changed, err)
	}
	if changed, err := nginx.Apply(t.Context(), site); err != nil || changed {
		t.Error("the same again changes something", err)
	}
	before, err := os.ReadFile(nginx.File)
	if err != nil {
		t.Fatal(err)
	}
	broken := Sites{All: []Site{{Name: "a.example", Upstream: site.All[0].Upstream, Certificate: "/nonexistent.pem", Key: "/nonexistent.pem"}}}
	_, err = nginx.Apply(t.Context(), broken)
	if err == nil || !strings.Contains(err.Error(), "nonexistent.pem") {
		t.Errorf("got %v", err)
	}
	if after, _ := os.ReadFile(nginx.File); !bytes.Equal(after, before) {
		t.Error("the file is another")
	}
}
