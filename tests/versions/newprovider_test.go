package versions

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// documents is the need for a host's documents.
const documents = "config-documents"

// each is needs of a host, of each other kind.
func each(h *local.Host) []string {
	return []string{"cert-node", "cert-service-echo-" + h.Name, "cert-user-alice", "oidc-wiki-" + h.Name, "file-wiki-" + h.Name + "-password"}
}

// TestNewProvider: a provider of this release answers hosts of the oldest, forwarders of both
// call each other, and what only this release understands waits on the old host until its
// programs are exchanged.
func TestNewProvider(t *testing.T) {
	old, new := releases(t)
	c := start(t, new)
	first := serial(t, c.b)

	t.Log("calls both ways, over TCP and UDP, and calls that an upstream refuses")
	for from, to := range map[*local.Host]*local.Host{c.b: c.c, c.c: c.b} {
		c.reaches(t, from, "tcp", "echo-"+to.Name)
		c.reaches(t, from, "udp", "heard-"+to.Name)
		c.reaches(t, from, "tcp", "gone-"+to.Name)
		c.refused(t, from, to, "tcp", "down-"+to.Name, "upstream-refused")
		c.refused(t, from, to, "udp", "mute-"+to.Name, "upstream-refused")
	}
	c.renews(t, c.b, each(c.b)...)
	c.renews(t, c.c, each(c.c)...)

	t.Log("documents over the network; c, which does not have them yet, is denied what it lost")
	check(t, c.c.Stop("activate", syscall.SIGTERM))
	late := c.publish(t, "late", map[string]any{"late": "b", "granted": []string{"gone-c"}, "lost": []string{"gone-b"}})
	c.has(t, late, c.p, c.b)
	c.refused(t, c.c, c.b, "tcp", "gone-b", "denied")
	check(t, c.c.Activate())
	c.has(t, late, c.c)
	c.reaches(t, c.c, "tcp", "late")

	t.Log("a manifest of a newer format waits; b, which does not have it, is denied what it lost")
	announced := c.publish(t, "announced", map[string]any{"announced": "b", "granted": []string{}, "lost": []string{"gone-b", "gone-c"}})
	c.has(t, announced, c.p, c.c)
	c.waits(t, c.b, documents, "has format 1.1", "up to 1.0")
	c.refused(t, c.b, c.c, "tcp", "gone-c", "denied")
	c.reaches(t, c.b, "tcp", "echo-c")
	c.reaches(t, c.c, "tcp", "echo-b")
	if serial(t, c.b) != late || c.announces(t, c.c, "echo-b") {
		t.Errorf("b has the documents with serial %d in force, want %d", serial(t, c.b), late)
	}
	c.renews(t, c.b, each(c.b)...)

	t.Log("this release on the state of the oldest host")
	before := needs(t, c.b)
	c.exchange(t, c.b, new)
	c.has(t, announced, c.b)
	c.until(t, "echo-b to learn who calls", func() bool { return c.announces(t, c.c, "echo-b") })
	c.fulfilled(t)
	kept(t, c.b, before)
	c.renews(t, c.b, each(c.b)...)

	t.Log("the oldest on the state of this release: what it does not understand is not in force, all else is")
	for h, in := range map[*local.Host]int64{c.b: first, c.c: announced} {
		before := needs(t, h)
		c.exchange(t, h, old)
		c.has(t, in, h)
		c.until(t, "an answer about the documents of "+h.Name, func() bool {
			s := state(t, h, documents)
			return s.Error != nil || s.Answers > before[documents].Answers
		})
		kept(t, h, before)
		c.renews(t, h, each(h)...)
	}
	c.waits(t, c.b, documents, "has format 1.1", "up to 1.0")
	c.reaches(t, c.b, "udp", "heard-c")
	c.reaches(t, c.c, "tcp", "echo-b")

	t.Log("a closure of a newer format waits too, and is refused where nothing is in force")
	check(t, c.b.Deploy(c.Path("announced", "b")))
	check(t, c.b.Activate())
	c.closureWaits(t, c.b)
	c.refusesFirst(t, old, c.Path("announced", "b"))
	c.exchange(t, c.b, new)
	c.until(t, "echo-b to learn who calls", func() bool { return c.announces(t, c.c, "echo-b") })
	c.fulfilled(t)
	if e, err := c.b.Layout().ClosureError(); e != nil || err != nil {
		t.Errorf("the closure of b is refused: %+v, %v", e, err)
	}

	t.Log("the oldest, where neither closure nor what is in force is for it, refuses to start and changes nothing")
	before = needs(t, c.b)
	c.exchange(t, c.b, old)
	c.until(t, "activation of b to end", func() bool { return strings.Contains(c.b.Ended()["activate"], "has format 1.1") })
	c.exchange(t, c.b, new)
	c.until(t, "echo-b to learn who calls", func() bool { return c.announces(t, c.c, "echo-b") })
	kept(t, c.b, before)
}

// refusesFirst starts a host that has no documents in force with those of a newer format.
func (c *cluster) refusesFirst(t *testing.T, of release, closure string) {
	t.Helper()
	h := &local.Host{Name: "b", Dir: t.TempDir()}
	of.use(t, h, nil)
	kit.WriteHostKey(h.HostKey())
	check(t, h.Deploy(closure))
	code, out, err := h.Once(t.Context())
	check(t, err)
	if code != 1 || !strings.Contains(out, "has format 1.1") || !strings.Contains(out, "upgrade") {
		t.Errorf("exit status %d: %s: want 1 and what to upgrade", code, out)
	}
	if _, err := h.Layout().Manifest(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("documents are in force: %v", err)
	}
}

// closureWaits waits until a host has refused its closure for its format.
func (c *cluster) closureWaits(t *testing.T, h *local.Host) {
	t.Helper()
	var e *hostdir.NeedError
	c.until(t, "the closure of "+h.Name+" to wait", func() (ok bool) {
		var err error
		e, err = h.Layout().ClosureError()
		return err == nil && e != nil
	})
	newer(t, *e, "has format 1.1", "up to 1.0")
}
