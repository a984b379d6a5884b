// Package clusters tests two clusters of one trust domain together: the real compiler, providers,
// forwarders and ingress, connected over loopback.
package clusters

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/kit/ingresstest"
	"github.com/florete/florete/tests/local"
	"github.com/florete/florete/tests/program"
)

// bin is the environment variable that names the directory of Florete's programs.
const bin = "FLORETE_TEST_CLUSTERS"

// The public name of the service of blue, and the address of the ingress of demo.
const (
	name    = "tickets.example"
	frontAt = "192.0.2.2"
)

// The addresses of the issuer of blue and of the service wiki of demo, and alice's password.
const (
	issuerAt = "127.0.0.1:5556"
	wikiAt   = "127.0.0.1:4661"
	password = "correct horse"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clusters contains the hosts of both clusters. The operator of both is the same.
type clusters struct {
	local.Operator
	front, desk, gate *local.Host
	facts             map[string]any
	nginx             ingresstest.Nginx
}

// TestClusters checks that a stranger reaches a service of one cluster through the ingress of
// another, that a node without a role in the cluster of the service does not, and that the name is
// closed when it is removed. It also checks that a host gets a client at the issuer of another
// cluster only after that cluster has declared the client, and that a person signs in with it.
func TestClusters(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	program.Require(t, "nginx")
	agenttest.Root(t, "can make a network namespace")
	if os.Getenv(bin) == "" {
		t.Setenv(bin, t.TempDir())
		check(t, kit.Programs(t.Context(), "../..", os.Getenv(bin)))
	}
	if !agenttest.OwnNetwork(t) {
		return
	}
	c := start(t)

	kit.Eventually(t, "the service of blue at the ingress of demo", func() bool {
		body, status := stranger("/")
		return status == http.StatusOK && body == "tickets of blue"
	})
	kit.Eventually(t, "the refusal of /admin by the rule of the ingress", func() bool {
		_, status := stranger("/admin")
		return status == http.StatusForbidden
	})

	// The node of the ingress reaches the service itself, too. That of the other host does not.
	kit.Eventually(t, "tickets from front", func() bool { return reaches(t, c.front) == "tickets of blue" })
	if got := reaches(t, c.desk); got != "" {
		t.Fatalf("desk, to which blue gives no role, gets %q", got)
	}
	kit.Eventually(t, "the refusal in the log of gate", func() bool {
		b, err := os.ReadFile(c.gate.Log("agent"))
		return err == nil && strings.Contains(string(b), "spiffe://"+kit.Domain+"/node/desk")
	})

	c.signIn(t)

	c.facts["public"] = false
	check(t, local.Write(c.Path("cluster", "facts.json"), c.facts))
	c.compile(t, "closed", time.Now())
	check(t, c.front.Deploy(c.Path("closed-demo", "front")))
	check(t, c.front.Activate())
	check(t, c.front.Agent())
	kit.Eventually(t, "the name is closed", func() bool {
		body, status := stranger("/")
		return status != http.StatusOK && body == ""
	})
}

// signIn lets the service wiki of demo become a client of the issuer of blue.
func (c *clusters) signIn(t *testing.T) {
	t.Helper()
	refusal := ""
	kit.Eventually(t, "a refusal of the client", func() bool {
		needs, err := c.front.Needs()
		check(t, err)
		if e := needs["oidc-wiki"].Error; e != nil {
			refusal = e.Message
		}
		return strings.Contains(refusal, "the policy grants nothing to spiffe://"+kit.Domain+"/node/front")
	})
	if _, err := c.front.Value("oidc-wiki", "client-secret"); err == nil {
		t.Error("front has a client that blue does not have")
	}

	ref := "git+file://" + c.Path("cluster")
	if _, err := c.Run(t.Context(), "florctl", "validate", ref); err == nil || !strings.Contains(err.Error(), "FL187") {
		t.Errorf("florctl validate without the client: %v, want FL187", err)
	}
	c.facts["client"] = true
	check(t, local.Write(c.Path("cluster", "facts.json"), c.facts))
	c.compile(t, "client", time.Now().Add(-30*time.Second))
	_, err := c.Run(t.Context(), "florctl", "validate", ref)
	check(t, err)
	check(t, c.gate.Deploy(c.Path("client-blue", "gate")))
	check(t, c.gate.Activate())
	kit.Eventually(t, "the new policy of gate", func() bool {
		b, err := os.ReadFile(c.gate.Log(local.ProviderPart("oidc")))
		return err == nil && strings.Count(string(b), "came into force") == 2
	})
	check(t, os.MkdirAll(c.front.Refetch(), 0o755)) // as flor refetch does
	check(t, os.WriteFile(filepath.Join(c.front.Refetch(), "oidc-wiki"), nil, 0o644))
	kit.Eventually(t, "the client", func() bool {
		_, err := c.front.Value("oidc-wiki", "client-secret")
		return err == nil
	})
	for file, want := range map[string]string{"issuer": "http://auth.demo.flor.rete:5556", "client-id": "wiki.demo.flor.rete"} {
		if got, err := c.front.Value("oidc-wiki", file); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", file, got, err, want)
		}
	}
	if got, err := c.front.Value("oidc-wiki", "client-secret"); err != nil || len(got) < 32 {
		t.Errorf("client-secret: %d bytes, %v", len(got), err)
	}

	// Alice has an account of blue alone.
	jar, err := cookiejar.New(nil)
	check(t, err)
	listeners := map[string]string{"auth.demo.flor.rete:5556": issuerAt, "wiki.example:80": wikiAt}
	browser := &http.Client{Jar: jar, Timeout: local.Limit, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, listeners[at])
	}}}
	serve(t, wikiAt, &local.SignIn{Host: c.front, Need: "oidc-wiki", Redirect: "http://wiki.example/callback", Client: func() (*http.Client, error) { return browser, nil }})
	page, at, err := local.LogIn(browser, "http://wiki.example/login", "alice@"+kit.Domain, password)
	if err != nil || at.Host != "wiki.example" || page != "logged in as alice@"+kit.Domain {
		t.Errorf("alice's sign-in at wiki ends at %s with %q, %v", at, page, err)
	}
}

// serve serves a program of a host until the test ends.
func serve(t *testing.T, at string, program http.Handler) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	check(t, err)
	s := &http.Server{Handler: program}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
}

// start starts both clusters.
func start(t *testing.T) *clusters {
	t.Helper()
	repo, err := filepath.Abs("../..")
	check(t, err)
	c := &clusters{Operator: local.Operator{Repo: repo, Bin: os.Getenv(bin), Work: t.TempDir()}, nginx: ingresstest.NewNginx(t)}
	for name, h := range map[string]**local.Host{"front": &c.front, "desk": &c.desk, "gate": &c.gate} {
		*h = &local.Host{Name: name, Dir: c.Path("hosts", name), Bin: c.Bin}
	}
	t.Cleanup(func() { c.stop(t) })
	script := "#!/bin/sh\nexec " + strings.Join(c.nginx.Command, " ") + " \"$@\"\n"
	check(t, os.WriteFile(filepath.Join(c.Bin, "nginx"), []byte(script), 0o700))
	t.Setenv("PATH", c.Bin+":"+os.Getenv("PATH"))

	c.facts, err = c.Begin(t.Context(), "clusters-1", c.front, c.desk, c.gate)
	check(t, err)
	c.facts["public"], c.facts["client"] = true, false
	check(t, c.Flake(t.Context(), "flake", c.facts))
	c.compile(t, "first", time.Now().Add(-time.Minute))

	c.provide(t, c.front, c.Path("first-demo", "front"), "cert", "tls")
	c.provide(t, c.gate, c.Path("first-blue", "gate"), "cert", "oidc")
	check(t, c.desk.Deploy(c.Path("first-demo", "desk")))
	check(t, c.desk.Activate())
	check(t, c.desk.Agent())

	serve(t, "127.0.0.1:4660", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "tickets of blue") }))

	_, err = c.Run(t.Context(), "ip", "address", "add", frontAt+"/32", "dev", "lo")
	check(t, err)
	c.nginx.Start(t)
	check(t, c.front.Start("ingress", "flor", "ingress", "--state", string(c.front.Layout()), "--file", c.nginx.File))
	return c
}

// compile commits the flake and compiles the documents of each cluster, to folders called after the
// revision and the cluster.
func (c *clusters) compile(t *testing.T, revision string, at time.Time) {
	t.Helper()
	check(t, c.Record(t.Context(), at, revision))
	ref := "git+file://" + c.Path("cluster")
	for _, cluster := range []string{"demo", "blue"} {
		_, err := c.Run(t.Context(), "florctl", "compile", ref, "--cluster", cluster, "--out", c.Path(revision+"-"+cluster))
		check(t, err)
	}
}

// provide starts all programs on a provider host, with its documents.
func (c *clusters) provide(t *testing.T, h *local.Host, documents string, kinds ...string) {
	t.Helper()
	check(t, local.Write(filepath.Join(h.Dir, "provider.hujson"), map[string]any{
		"activation": string(h.Layout()), "state": "provider",
		"cert": map[string]string{"issuingCertificate": "issuing.crt"},
		"oidc": map[string]string{"listen": issuerAt, "users": "users.hujson"},
	}))
	check(t, h.People(password, "alice"))
	check(t, h.Deploy(documents))
	check(t, c.Issue(t.Context(), h))
	check(t, h.Provide(kinds...))
	check(t, h.Activate())
	check(t, h.Agent())
}

func (c *clusters) stop(t *testing.T) {
	for _, h := range []*local.Host{c.desk, c.front, c.gate} {
		_ = h.Halt()
		logs, _ := filepath.Glob(h.Log("*"))
		for _, path := range logs {
			if b, err := os.ReadFile(path); err == nil && t.Failed() {
				t.Logf("%s, %s:\n%s", h.Name, filepath.Base(path), b)
			}
		}
	}
}

// stranger requests a page of the public name at the ingress of demo. The status is 0 if there is no
// answer.
func stranger(path string) (body string, status int) {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, frontAt+":443")
	}
	return get(&http.Client{Timeout: local.Limit, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the certificate is tested elsewhere
		DisableKeepAlives: true, DialContext: dial,
	}}, "https://"+name+path)
}

// reaches requests the page of tickets as the node of a host, through the local listener of its
// forwarder, and returns the answer.
func reaches(t *testing.T, h *local.Host) string {
	t.Helper()
	for _, r := range h.Manifest.Forwarder.Reach {
		if r.ID == kit.ID("service/tickets") {
			body, _ := get(&http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}, "http://"+r.Listen.String()+"/")
			return body
		}
	}
	t.Fatalf("%s has no listener for tickets", h.Name)
	return ""
}

func get(client *http.Client, url string) (body string, status int) {
	res, err := client.Get(url)
	if err != nil {
		return "", 0
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return "", res.StatusCode
	}
	return string(b), res.StatusCode
}
