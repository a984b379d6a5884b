// Package attacks performs forbidden actions on a cluster of real processes. It checks that each
// action is refused with the expected error, and that the audit log shows the refusal. The cluster
// has the hosts p, b and c, and its flake is in the folder cluster.
package attacks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/local"
)

// These are unused account IDs. The tests run processes under them, as Alice, as Bob, as Carol and
// as an account without an identity.
const (
	uidAlice    = 64001
	uidBob      = 64002
	uidStranger = 64003
	uidCarol    = 64004
	uidDora     = 64005
	uidErin     = 64006
)

// These are the secrets in the cluster, which no attack may obtain.
const (
	password = "correct horse" // of Alice and of Bob at the issuer
	secret   = "swordfish"     // content of the file that wiki receives
)

// cluster is a cluster of real processes, which the tests attack.
type cluster struct {
	local.Operator
	p, b, c  *local.Host
	loopback string           // first two numbers of all addresses
	unread   []net.Conn       // kept open: otherwise the garbage collector would close them
	serving  []net.Listener   // listeners of the services
	blue     *foreign         // foreign trust domain that the cluster federates with
	approve  approvers        // keys with which users approve requests for roles
	sockets  string           // directory that every account may enter
	instance hostdir.Instance // instance of p, which has its own directory in /run
}

// shared is the cluster that all tables of attacks share. Each table may attack a cluster once.
// When tests are repeated with -count, the next repetition starts a new cluster.
var shared struct {
	*cluster
	err      error
	attacked map[string]*testing.T // tests that have attacked it, by name
}

func TestMain(m *testing.M) {
	agenttest.Child()
	code := m.Run()
	if shared.cluster != nil {
		shared.stop()
	}
	os.Exit(code)
}

// start returns the cluster that all tables share. The first call starts it.
func start(t *testing.T) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	if before, ok := shared.attacked[t.Name()]; shared.attacked == nil || ok && before != t {
		if shared.cluster != nil {
			shared.stop()
		}
		shared.attacked = map[string]*testing.T{}
		shared.cluster, shared.err = bringUp(context.Background())
	}
	shared.attacked[t.Name()] = t
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

func bringUp(ctx context.Context) (*cluster, error) {
	work, err := os.MkdirTemp("", "florete-attacks-")
	if err != nil {
		return nil, err
	}
	repo, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	c := &cluster{Operator: local.Operator{Repo: repo, Bin: filepath.Join(work, "bin"), Work: work},
		approve:  approvers{"dora": kit.NewHostKey(), "erin": kit.NewHostKey()},
		loopback: fmt.Sprintf("127.%d", 192+os.Getpid()%63), instance: hostdir.Instance(fmt.Sprintf("a%d", os.Getpid()))}
	if c.blue, err = newForeign(c.loopback + ".0.9:0"); err != nil {
		return nil, err
	}
	if c.sockets, err = os.MkdirTemp("", "florete-sockets-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(c.sockets, 0o755); err != nil {
		return nil, err
	}
	for name, h := range map[string]**local.Host{"p": &c.p, "b": &c.b, "c": &c.c} {
		*h = &local.Host{Name: name, Dir: c.Path("hosts", name), Bin: c.Bin}
	}
	for _, step := range []func(context.Context) error{c.build, c.prepare, c.provide, c.serve, c.serveNamed, c.serveStrangers, c.activate} {
		if err := step(ctx); err != nil {
			c.stop()
			return nil, err
		}
	}
	return c, nil
}

func (c *cluster) hosts() []*local.Host { return []*local.Host{c.p, c.b, c.c} }

func (c *cluster) build(ctx context.Context) error { return kit.Programs(ctx, c.Repo, c.Bin) }

// prepare does the work of an operator before the cluster starts. It creates the root, the keys and
// the flake, and compiles the documents.
func (c *cluster) prepare(ctx context.Context) error {
	facts, err := c.Begin(ctx, "sec-1", c.hosts()...)
	if err != nil {
		return err
	}
	maps.Copy(facts, map[string]any{"alice": uidAlice, "bob": uidBob, "carol": uidCarol, "dora": uidDora, "erin": uidErin,
		"approvals": c.approve.facts(), "blue": c.blue.endpoint, "instance": c.instance, "loopback": c.loopback, "sockets": c.sockets})
	if err := c.Flake(ctx, "cluster", facts); err != nil {
		return err
	}
	if err := os.WriteFile(c.Path("cluster", "blue.bundle.json"), c.blue.ca.Bundle(1, time.Second), 0o644); err != nil {
		return err
	}
	return c.Commit(ctx, time.Now(), "the cluster", "documents")
}

// kinds lists the kinds of need that provider p serves.
var kinds = []string{"cert", "config", "federation", "file", "jwt", "oidc", "token"}

// bootstrapSocket returns the path of the socket on which provider p, for its kind token, accepts
// the first administrator of a tenant.
func (c *cluster) bootstrapSocket() string {
	return filepath.Join(c.sockets, "bootstrap", "bootstrap.sock")
}

// provide starts a provider process on host p for each kind of need.
func (c *cluster) provide(ctx context.Context) error {
	if err := c.p.People(password, "alice", "bob"); err != nil {
		return err
	}
	account, err := user.Current()
	if err != nil {
		return err
	}
	relayed := filepath.Join(c.sockets, hostdir.Instance("").Unit("provider-token"))
	if err := os.Mkdir(relayed, 0o700); err != nil {
		return err
	}
	settings := map[string]any{
		"activation": string(c.p.Layout()), "state": "provider",
		"cert":       map[string]string{"issuingCertificate": "issuing.crt"},
		"oidc":       map[string]string{"listen": c.loopback + ".0.1:5556", "users": "users.hujson"},
		"file":       map[string]string{"dir": "files"},
		"jwt":        map[string]string{"listen": c.loopback + ".0.1:5557"},
		"federation": map[string]string{"keys": filepath.Join(c.p.Layout().Need("jwt-keys"), "current", document.FileJWTKeys)},
		"config":     map[string]string{"control": c.controlSocket(), "forwarder": account.Username, "run": c.sockets},
		"token": map[string]string{"listen": filepath.Join(c.sockets, "token.sock"), "forwarder": account.Username,
			"control": filepath.Join(relayed, announced.OperatorSocket), "config": account.Username, "bootstrap": c.bootstrapSocket()},
	}
	if err := c.controlDir(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(c.p.Dir, "files", "wiki"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.p.Dir, "files/wiki/password"), []byte(secret), 0o600); err != nil {
		return err
	}
	if err := local.Write(filepath.Join(c.p.Dir, "provider.hujson"), settings); err != nil {
		return err
	}
	for _, h := range c.hosts() {
		if err := h.Deploy(c.Path("documents", h.Name)); err != nil {
			return err
		}
	}
	if err := c.Issue(ctx, c.p); err != nil {
		return err
	}
	if err := c.p.Provide(kinds...); err != nil {
		return err
	}
	return c.Publish(ctx, c.p, "documents")
}

// serve runs the services of host b. Each of them echoes its input, except one that never reads.
func (c *cluster) serve(context.Context) error {
	deaf, err := c.listen("tcp", c.loopback+".0.2:8906")
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := deaf.Accept()
			if err != nil {
				return
			}
			_ = conn.(*net.TCPConn).SetReadBuffer(4096)
			c.unread = append(c.unread, conn)
		}
	}()
	for _, port := range []int{8901, 8903, 8904, 8910, 8911, 8912} {
		l, err := c.listen("tcp", fmt.Sprintf("%s.0.2:%d", c.loopback, port))
		if err != nil {
			return err
		}
		go kit.Accept(l, kit.Echo)
	}
	return nil
}

// listen opens a listener that is closed when the cluster stops.
func (c *cluster) listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	if err == nil {
		c.serving = append(c.serving, l)
	}
	return l, err
}

// activate starts activation and the forwarder on every host. It waits until all needs are
// fulfilled and all forwarders run.
func (c *cluster) activate(ctx context.Context) error {
	for _, h := range c.hosts() {
		if err := h.Activate(); err != nil {
			return err
		}
		if err := h.Agent(); err != nil {
			return err
		}
	}
	if err := kit.Poll(ctx, func() error {
		var missing error
		for _, h := range c.hosts() {
			missing = errors.Join(missing, h.Unfulfilled())
		}
		if missing != nil {
			return fmt.Errorf("%w: p %v, b %v, c %v", missing, c.p.Ended(), c.b.Ended(), c.c.Ended())
		}
		return nil
	}); err != nil {
		return err
	}
	if err := c.waitPages(); err != nil {
		return err
	}
	svid, err := c.c.SVID("cert-user-alice")
	if err != nil {
		return err
	}
	return kit.Poll(ctx, func() error { return c.knock(ctx, "echo", svid) })
}

// waitPages waits until the sign-in pages are available.
func (c *cluster) waitPages() error {
	return kit.Poll(context.Background(), func() error {
		conn, err := net.Dial("tcp", c.loopback+".0.1:5556")
		if err != nil {
			return fmt.Errorf("pages to sign in: %w", err)
		}
		return conn.Close()
	})
}

func (c *cluster) stop() {
	for _, h := range []*local.Host{c.c, c.b, c.p} {
		if err := h.Halt(); err != nil {
			fmt.Fprintln(os.Stderr, "attacks:", err)
		}
	}
	c.blue.server.Close()
	for _, l := range c.serving {
		_ = l.Close()
	}
	_ = os.RemoveAll(c.Work)
	_ = os.RemoveAll(c.sockets)
	_ = os.RemoveAll(filepath.Dir(c.controlSocket()))
}

// audit returns the rows of the audit log of provider p since a time. Each refusal must be recorded
// there.
func (c *cluster) audit(t *testing.T, since time.Time) []local.Decision {
	t.Helper()
	all, err := c.Audit(t.Context(), c.p, since)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// client returns a client for the provider process of a kind on host p. It sends requests as host h
// does, with the host's own certificate and SSH host key.
func (c *cluster) client(t *testing.T, h *local.Host, kind string) *hostapi.Client {
	t.Helper()
	roots, err := trust.NewRoots(kit.Domain, h.Manifest.Trust.Roots)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := os.ReadFile(h.HostKey())
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return &hostapi.Client{Node: h.Manifest.Identity.ID, Provider: c.b.Manifest.Providers["p"][kind], Roots: roots, SVID: c.svid(t, h, "cert-node"), HostKey: key}
}

// svid returns the SVID that was delivered for a need, as a thief would copy it from the host.
func (c *cluster) svid(t *testing.T, h *local.Host, need string) *tls.Certificate {
	t.Helper()
	svid, err := h.SVID(need)
	if err != nil {
		t.Fatal(err)
	}
	return svid
}

// knock opens a stream to a service of host b with a given SVID. It connects directly, without the
// caller's forwarder.
func (c *cluster) knock(ctx context.Context, service string, svid *tls.Certificate) error {
	target, err := spiffe.NewID(kit.Domain, spiffe.KindService, "", service)
	if err != nil {
		return err
	}
	return local.Knock(ctx, c.b.Manifest.Forwarder.Listen[0], target, svid)
}

// listener returns the address of the local listener through which host c reaches a service.
func (c *cluster) listener(t *testing.T, service string) string {
	t.Helper()
	for _, r := range c.c.Manifest.Forwarder.Reach {
		if strings.HasSuffix(r.ID.String(), "/"+service) {
			return r.Listen.String()
		}
	}
	t.Fatalf("c does not reach %s", service)
	return ""
}
