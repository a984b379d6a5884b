package versions

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// cluster is the one in the folder of this name: p has the providers, b and c hosts of two
// releases.
type cluster struct {
	local.Operator
	p, b, c  *local.Host
	loopback string // the first two numbers of all addresses
	facts    map[string]any
	commits  int
	begun    time.Time
}

// kinds are those of need that p answers.
var kinds = []string{"cert", "config", "file", "oidc"}

var clusters int

// start brings a cluster up with the closures of its first commit, which is published too:
// the operator and p have one release, b the old one, c the new one.
func start(t *testing.T, of release) *cluster {
	old, new := releases(t)
	clusters++
	c := &cluster{
		loopback: fmt.Sprintf("127.%d", 66+2*(os.Getpid()%60)+clusters%2), begun: time.Now().Add(-time.Hour),
		Operator: of.operator(t.TempDir()),
	}
	for name, h := range map[string]**local.Host{"p": &c.p, "b": &c.b, "c": &c.c} {
		*h = &local.Host{Name: name, Dir: c.Path("hosts", name)}
	}
	t.Cleanup(c.stop)
	c.prepare(t)
	c.commit(t, "first", nil)
	of.use(t, c.p, c.settings())
	old.use(t, c.b, nil)
	new.use(t, c.c, nil)
	for _, h := range c.hosts() {
		check(t, h.Deploy(c.Path("first", h.Name)))
	}
	check(t, c.Issue(t.Context(), c.p))
	c.serve(t)
	c.run(t, c.p)
	check(t, c.Publish(t.Context(), c.p, "first"))
	c.run(t, c.b)
	c.run(t, c.c)
	c.fulfilled(t)
	return c
}

func (c *cluster) hosts() []*local.Host { return []*local.Host{c.p, c.b, c.c} }

// run starts all that a host runs, again where it runs.
func (c *cluster) run(t *testing.T, h *local.Host) {
	t.Helper()
	if h == c.p {
		check(t, h.Provide(kinds...))
	}
	check(t, h.Activate())
	check(t, h.Agent())
}

// exchange gives a host the programs of another release, as nixos-rebuild switch does.
func (c *cluster) exchange(t *testing.T, h *local.Host, to release) {
	t.Helper()
	var settings map[string]any
	if h == c.p {
		settings = c.settings()
	}
	c.halt(t, h)
	to.use(t, h, settings)
	c.run(t, h)
}

func (c *cluster) halt(t *testing.T, h *local.Host) {
	t.Helper()
	check(t, h.Halt())
}

func (c *cluster) stop() {
	for _, h := range c.hosts() {
		_ = h.Halt()
	}
}

// prepare makes what the operator and the hosts have of their own, and the flake.
func (c *cluster) prepare(t *testing.T) {
	t.Helper()
	facts, err := c.Begin(t.Context(), "mixed-1", c.hosts()...)
	check(t, err)
	for _, h := range c.hosts() {
		check(t, os.MkdirAll(h.Refetch(), 0o700))
	}
	check(t, c.p.People("correct horse", "alice"))
	check(t, os.MkdirAll(filepath.Join(c.p.Dir, "files", "wiki"), 0o700))
	check(t, os.WriteFile(filepath.Join(c.p.Dir, "files", "wiki", "password"), []byte("swordfish"), 0o600))
	maps.Copy(facts, map[string]any{"loopback": c.loopback, "announced": "", "late": "", "granted": []string{"gone-b", "gone-c"}, "lost": []string{}})
	c.facts = facts
	c.flake(t)
}

// flake is the cluster's, on the Florete of the operator's release.
func (c *cluster) flake(t *testing.T) {
	t.Helper()
	for _, part := range []string{"florete", "cluster"} {
		check(t, os.RemoveAll(c.Path(part)))
	}
	check(t, c.Flake(t.Context(), "cluster", c.facts))
}

// commit changes facts of the cluster and returns the serial of its documents.
func (c *cluster) commit(t *testing.T, name string, facts map[string]any) int64 {
	t.Helper()
	for fact, value := range facts {
		c.facts[fact] = value
	}
	check(t, local.Write(c.Path("cluster", "facts.json"), c.facts))
	check(t, os.WriteFile(c.Path("cluster", "revision"), []byte(name), 0o644))
	c.commits++
	at := c.begun.Add(time.Duration(c.commits) * time.Minute)
	check(t, c.Commit(t.Context(), at, name, name))
	return at.Unix()
}

// publish commits and has p serve it.
func (c *cluster) publish(t *testing.T, name string, facts map[string]any) int64 {
	t.Helper()
	serial := c.commit(t, name, facts)
	check(t, c.Publish(t.Context(), c.p, name))
	return serial
}

func (c *cluster) settings() map[string]any {
	return map[string]any{
		"state": "provider",
		"cert":  map[string]string{"issuingCertificate": "issuing.crt"},
		"oidc":  map[string]string{"listen": c.loopback + ".0.1:5556", "users": "users.hujson"},
		"file":  map[string]string{"dir": "files"},
	}
}

// serve runs what the services of b and c stand for: each sends back what it receives.
func (c *cluster) serve(t *testing.T) {
	t.Helper()
	for _, at := range []string{"2:8901", "2:8903", "2:8906", "3:8901", "3:8903", "3:8906"} {
		l, err := net.Listen("tcp", c.loopback+".0."+at)
		check(t, err)
		t.Cleanup(func() { l.Close() })
		go kit.Accept(l, kit.Echo)
	}
	for _, at := range []string{"2:8902", "3:8902"} {
		l, err := net.ListenPacket("udp", c.loopback+".0."+at)
		check(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			b := make([]byte, 64)
			for {
				n, from, err := l.ReadFrom(b)
				if err != nil {
					return
				}
				_, _ = l.WriteTo(b[:n], from)
			}
		}()
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
