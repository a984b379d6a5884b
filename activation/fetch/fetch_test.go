package fetch

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
	. "github.com/florete/florete/tests/kit/activationtest"
)

func newHost(t *testing.T) (*Host, Attempt) {
	c := NewCluster(t)
	m := c.Manifest()
	roots, err := trust.NewRoots(m.TrustDomain, m.Trust.Roots)
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{Layout: hostdir.Layout(t.TempDir()), Manifest: m, Serial: 1, Roots: roots, HostKey: c.HostKey}
	return h, Attempt{Need: m.Needs[0], Provider: "forge", Digest: "d"}
}

// TestPendingComesFirst checks that a request is on disk, readable by root alone, before it is
// sent.
func TestPendingComesFirst(t *testing.T) {
	h, a := newHost(t)
	h.Dial = func(context.Context, string, string) (net.Conn, error) {
		info, err := os.Stat(h.pendingPath(a.Need.ID))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("while calling: %v %v", info, err)
		}
		return nil, errors.New("nobody there")
	}
	if _, e := h.Pass().Fetch(t.Context(), a); e == nil || !e.Received || e.Kind != hostapi.Transient {
		t.Errorf("%v", e)
	}
}

func TestPendingIsOfOneEffort(t *testing.T) {
	h, a := newHost(t)
	first, err := h.pending(a)
	if err != nil || first.PrivateKey == "" || first.Key == "" {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		edit func(*Attempt)
		same bool
	}{
		"the same":       {func(*Attempt) {}, true},
		"another need":   {func(a *Attempt) { a.Digest = "e" }, false},
		"answered since": {func(a *Attempt) { a.Answers++ }, false},
		"a rotation":     {func(a *Attempt) { a.Rotation++ }, false},
	} {
		if _, err := h.pending(a); err != nil {
			t.Fatal(err)
		}
		before, _, _ := h.readPending(a.Need.ID)
		other := a
		c.edit(&other)
		p, err := h.pending(other)
		if err != nil {
			t.Fatal(err)
		}
		if same := p.PrivateKey == before.PrivateKey && p.Key == before.Key && string(p.Body) == string(before.Body); same != c.same {
			t.Errorf("%s: the same request: %v, want %v", name, same, c.same)
		}
	}
	if err := os.WriteFile(h.pendingPath(a.Need.ID), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := h.pending(a); err != nil || p.Key == first.Key {
		t.Errorf("what cannot be read is made anew: %v", err)
	}
}

func TestDiskRefuses(t *testing.T) {
	h, a := newHost(t)
	if err := os.MkdirAll(h.pendingPath(a.Need.ID), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, e := h.Pass().Fetch(t.Context(), a); e == nil || e.Received || e.Code != CodeDisk.Name {
		t.Errorf("%v", e)
	}
}

// TestAnswersThatAreNotOurs checks that an SVID for another key or another identity is not
// delivered.
func TestAnswersThatAreNotOurs(t *testing.T) {
	h, a := newHost(t)
	p, err := h.pending(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, svid := range []string{"", "no PEM", p.PrivateKey, h.Manifest.Trust.Roots[0]} {
		answer := hostapi.Answer{Values: map[string]string{"svid": svid}}
		if e := h.complete(a, p, &answer); e == nil || e.Kind != hostapi.Invalid || !strings.Contains(e.Message, "answer: svid: ") {
			t.Errorf("%.20q: %v", svid, e)
		}
	}
	answer := hostapi.Answer{Expires: -1}
	if e := h.complete(a, p, &answer); e == nil || e.Code != hostapi.CodeClock.Name {
		t.Errorf("expired: %v", e)
	}
}

func TestHostKeyRefuses(t *testing.T) {
	h, _ := newHost(t)
	own := h.HostKey
	passes := map[string]bool{} // what may be right without anybody's decision
	noKey := filepath.Join(t.TempDir(), "no-key")
	if err := os.WriteFile(noKey, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	readable := func(mode fs.FileMode) string {
		path := NewCluster(t).HostKey
		if err := errors.Join(os.Chown(path, -1, 65534), os.Chmod(path, mode)); err != nil {
			t.Skipf("NOT RUN: needs root, to give a file to a group: %v", err)
		}
		return path
	}
	for want, edit := range map[string]func(){
		"no such file or directory: give the host's private key with --ssh-host-key": func() { h.HostKey, passes[own+"x"] = own+"x", true },
		"ssh: no key found":          func() { h.HostKey, passes[noKey] = noKey, true },
		"mode 0604 lets other":       func() { h.HostKey = readable(0o604); passes[h.HostKey] = true },
		"want 0600: chmod 0600 /":    func() { h.HostKey = readable(0o640); passes[h.HostKey] = true },
		"declare this host's key in": func() { h.HostKey = NewCluster(t).HostKey },
		`sshHostKey "ssh-dss": `:     func() { h.HostKey, h.Manifest.Identity.SSHHostKey = own, "ssh-dss" },
	} {
		declared := h.Manifest.Identity.SSHHostKey
		edit()
		kind := hostapi.Denied
		if passes[h.HostKey] {
			kind = hostapi.Transient
		}
		if _, e := h.declaredHostKey(); e == nil || e.Received || e.Code != CodeHostKey.Name || e.Kind != kind || !strings.Contains(e.Message, want) {
			t.Errorf("%v, want %q", e, want)
		}
		h.Manifest.Identity.SSHHostKey = declared
	}
}

// TestHostKeyOfGroup checks that a host key is used that its owner's group may read, as on Fedora.
func TestHostKeyOfGroup(t *testing.T) {
	h, _ := newHost(t)
	if err := os.Chmod(h.HostKey, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, e := h.declaredHostKey(); e != nil {
		t.Error(e)
	}
}
