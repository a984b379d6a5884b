package browser

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/ingresstest"
	"github.com/florete/florete/tests/local"
)

const (
	domain   = "demo.flor"
	password = "correct horse" // password of Alice
	gateAt   = "192.0.2.2"     // address to which people on the internet connect
)

// cluster is the cluster in the folder cluster, together with the other programs that run on its
// hosts.
type cluster struct {
	local.Operator
	forge, gate *local.Host
	home        *local.Host      // host that can be reached only through gate
	instance    hostdir.Instance // instance of forge, which has its own directory in /run
	facts       map[string]any
	nginx       ingresstest.Nginx
	stopNginx   func()
	root        string // file with the root of the CA for public names outside DNS
}

// bin is the environment variable that names the directory of Florete's programs.
const bin = "FLORETE_TEST_BROWSER"

// ingressScript is the name of a script that runs flor ingress on a machine on which names and the CA
// of the domain example are known. The ingress asks the issuer about people.
const ingressScript = "ingress-of-example"

// kinds lists the kinds of need that the host forge serves as the provider of the cluster.
var kinds = []string{"cert", "config", "oidc", "tls"}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// build compiles Florete's programs for the cluster. It runs in the original process of OwnNetwork,
// because the time of the child process is limited.
func build(t *testing.T) {
	t.Helper()
	if os.Getenv(bin) != "" {
		return
	}
	t.Setenv(bin, t.TempDir())
	check(t, kit.Programs(t.Context(), "../..", os.Getenv(bin)))
}

// start starts the cluster, except for its ingress. Function openGate starts the ingress.
func start(t *testing.T) *cluster {
	t.Helper()
	repo, err := filepath.Abs("../..")
	check(t, err)
	work := t.TempDir()
	c := &cluster{
		Operator: local.Operator{Repo: repo, Bin: os.Getenv(bin), Work: work},
		instance: hostdir.Instance(fmt.Sprintf("w%d", os.Getpid())), nginx: ingresstest.NewNginx(t),
	}
	c.forge = &local.Host{Name: "forge", Dir: c.Path("forge"), Bin: c.Bin}
	c.gate = &local.Host{Name: "gate", Dir: c.Path("gate"), Bin: c.Bin}
	c.home = &local.Host{Name: "home", Dir: c.Path("home"), Bin: c.Bin}
	t.Cleanup(func() { c.stop(t) })
	// flor ingress runs the program called nginx. This script is that program.
	script := "#!/bin/sh\nexec " + strings.Join(c.nginx.Command, " ") + " \"$@\"\n"
	check(t, os.WriteFile(filepath.Join(c.Bin, "nginx"), []byte(script), 0o700))
	c.root = c.Path("web-ca.crt")
	check(t, os.WriteFile(c.Path("hosts"), []byte(gateAt+" auth.example\n"), 0o644))
	script = fmt.Sprintf("#!/bin/sh\nexec unshare --mount sh -c 'mount --bind %s /etc/hosts && SSL_CERT_FILE=%s exec %s ingress \"$@\"' flor \"$@\"\n",
		c.Path("hosts"), c.root, filepath.Join(c.Bin, "flor"))
	check(t, os.WriteFile(filepath.Join(c.Bin, ingressScript), []byte(script), 0o700))
	t.Setenv("PATH", c.Bin+":"+os.Getenv("PATH"))
	_, err = c.Run(t.Context(), "ip", "address", "add", gateAt+"/32", "dev", "lo")
	check(t, err)
	c.prepare(t)
	c.provide(t)
	return c
}

// prepare does the work of an operator before the cluster starts. It creates the root, the keys and
// the flake, and compiles the documents.
func (c *cluster) prepare(t *testing.T) {
	t.Helper()
	facts, err := c.Begin(t.Context(), "web-1", c.forge, c.gate, c.home)
	check(t, err)
	facts["instance"] = c.instance
	c.facts = facts
	check(t, c.Flake(t.Context(), "cluster", c.facts))
	check(t, c.Commit(t.Context(), time.Now().Add(-time.Minute), "the cluster", "first"))
}

// provide starts all programs on the host forge, except its services.
func (c *cluster) provide(t *testing.T) {
	t.Helper()
	check(t, c.forge.People(password, "alice"))
	run := "/run/" + c.instance.Unit("provider-config")
	t.Cleanup(func() { os.RemoveAll(run) })
	relayed := filepath.Join(run, hostdir.Instance("").Unit("provider-tls"))
	check(t, os.MkdirAll(relayed, 0o700))
	check(t, local.Write(filepath.Join(c.forge.Dir, "provider.hujson"), map[string]any{
		"activation": string(c.forge.Layout()), "state": "provider",
		"cert":   map[string]string{"issuingCertificate": "issuing.crt"},
		"config": map[string]any{"control": filepath.Join(run, "control.sock"), "forwarder": c.facts["account"], "run": run},
		"oidc":   map[string]string{"listen": "127.0.0.1:5556", "users": "users.hujson"},
		"tls":    map[string]any{"control": filepath.Join(relayed, announced.OperatorSocket), "config": c.facts["account"]},
	}))
	check(t, c.forge.Deploy(c.Path("first", "forge")))
	check(t, c.Issue(t.Context(), c.forge))
	check(t, c.forge.Provide(kinds...))
	check(t, c.Publish(t.Context(), c.forge, "first"))
	check(t, c.forge.Activate())
	check(t, c.forge.Agent())
	check(t, c.home.Deploy(c.Path("first", "home")))
	check(t, c.home.Activate())
	check(t, c.home.Agent())
}

// openGate starts all programs on the ingress host, with the documents of a revision.
func (c *cluster) openGate(t *testing.T, revision string) {
	t.Helper()
	check(t, c.gate.Deploy(c.Path(revision, "gate")))
	check(t, c.gate.Activate())
	check(t, c.gate.Agent())
	c.stopNginx = c.nginx.Start(t)
	check(t, c.gate.Start("ingress", ingressScript, "--state", string(c.gate.Layout()), "--file", c.nginx.File))
}

// closeGate stops all programs on the ingress host, as if the host were switched off.
func (c *cluster) closeGate(t *testing.T) {
	t.Helper()
	c.stopNginx()
	check(t, c.gate.Halt())
}

// rebuildGate replaces the ingress host with another machine of the same name, whose disk is empty.
func (c *cluster) rebuildGate(t *testing.T) {
	t.Helper()
	c.closeGate(t)
	check(t, os.Remove(c.nginx.File))
	key, err := c.gate.Install()
	check(t, err)
	c.facts["sshHostKeys"].(map[string]string)["gate"] = key
	check(t, local.Write(c.Path("cluster", "facts.json"), c.facts))
	check(t, c.Commit(t.Context(), time.Now(), "gate has another key", "second"))
	check(t, c.Publish(t.Context(), c.forge, "second"))
	check(t, c.forge.Deploy(c.Path("second", "forge")))
	check(t, c.forge.Activate())
	c.openGate(t, "second")
	c.settles(t)
}

// fetchRoot fetches the root that browsers must trust, with florctl.
func (c *cluster) fetchRoot(t *testing.T) {
	t.Helper()
	i := slices.IndexFunc(c.gate.Manifest.Forwarder.SOCKS, func(l document.SOCKS) bool { return l.ID == kit.ID("user/olga") })
	if i < 0 {
		t.Fatal("gate has no SOCKS5 listener for olga")
	}
	out := ""
	kit.Eventually(t, "florctl ca web: "+out, func() bool {
		cmd := exec.CommandContext(t.Context(), filepath.Join(c.Bin, "florctl"), "ca", "web", "git+file://"+c.Path("cluster"), "--out", c.root)
		cmd.Env = append(os.Environ(), "HTTP_PROXY=socks5h://"+c.gate.Manifest.Forwarder.SOCKS[i].Listen.String())
		b, err := cmd.CombinedOutput()
		out = string(b)
		return err == nil
	})
	if !strings.Contains(out, "good for names below example, and no others") {
		t.Errorf("florctl ca web: %s", out)
	}
}

// stranger returns an HTTP client that acts as a browser on the internet. It trusts the CA, and
// every name resolves to the ingress.
func (c *cluster) stranger(serverName string) *http.Client {
	roots := x509.NewCertPool()
	b, _ := os.ReadFile(c.root) // without the file it trusts no root
	roots.AppendCertsFromPEM(b)
	return &http.Client{Timeout: local.Limit, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: serverName}, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(gateAt, port))
		},
	}}
}

// settles waits until clients on the internet reach both names for a while. A single success is not
// enough: old workers of nginx accept connections until they learn that newer workers exist.
func (c *cluster) settles(t *testing.T) {
	t.Helper()
	times := 0
	kit.Eventually(t, "the ingress", func() bool {
		times++
		for _, url := range []string{page, photos, "https://auth.example/.well-known/openid-configuration"} {
			res, err := c.stranger("").Get(url)
			if err != nil {
				times = 0
				break
			}
			res.Body.Close()
			if res.StatusCode >= http.StatusInternalServerError {
				times = 0
			}
		}
		return times == 10
	})
}

func (c *cluster) stop(t *testing.T) {
	for _, h := range []*local.Host{c.home, c.gate, c.forge} {
		_ = h.Halt()
		logs, _ := filepath.Glob(h.Log("*"))
		for _, path := range logs {
			if b, err := os.ReadFile(path); err == nil && t.Failed() {
				t.Logf("%s, %s:\n%s", h.Name, filepath.Base(path), b)
			}
		}
	}
}
