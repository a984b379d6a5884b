package activation

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// leave leaves an identity file with SVIDs and documents, as flor identity install does.
func leave(t *testing.T, l hostdir.Layout, documents []hostapi.SignedDocument, svids ...*tls.Certificate) {
	t.Helper()
	f := hostapi.IdentityFile{SVIDs: []hostapi.IdentitySVID{}, Schema: hostapi.IdentityFileSchema, Format: document.NewestFormat, Cluster: "demo", Node: Node, Artifact: hostapi.Artifact{Documents: documents}}
	for _, s := range svids {
		id, err := trust.LeafID(s.Leaf)
		if err != nil {
			t.Fatal(err)
		}
		chain, key := kit.EncodeSVID(s)
		f.SVIDs = append(f.SVIDs, hostapi.IdentitySVID{ID: id, SVID: string(chain), Key: string(key)})
	}
	b, err := json.Marshal(f)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(l.IdentityFile()), 0o700)
	}
	if err == nil {
		err = os.WriteFile(l.IdentityFile(), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestEnrolled checks that a running host without a network delivers an identity file as soon as it
// appears, that it later renews through its provider, and that an older file changes nothing.
func TestEnrolled(t *testing.T) {
	h := newHost(t)
	h.forge.SetDown(true)
	h.spare.SetDown(true)
	older, newer := h.CA.IssueAt(Node, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)), h.CA.Issue(Node, 3*time.Hour)
	leave(t, h.config.State, []hostapi.SignedDocument{}, newer)
	h.once()
	h.wantLine("cert-node: fulfilled by an identity file in attempt 1")
	if s := h.state("cert-node"); s.State != hostdir.NeedFulfilled || s.Provider != "" || s.Expires.Unix() != newer.Leaf.NotAfter.Unix() {
		t.Errorf("got %+v", s)
	}
	if _, err := os.Stat(h.config.State.IdentityFile()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the identity file is still there: %v", err)
	}
	chain, _ := kit.EncodeSVID(newer)
	leave(t, h.config.State, []hostapi.SignedDocument{}, older)
	h.once()
	if h.file("cert-node", hostdir.FileSVID) != string(chain) {
		t.Error("an older certificate was delivered")
	}
	if _, err := os.Stat(h.config.State.IdentityFile()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the older identity file is still there: %v", err)
	}
	newest := h.manifest
	newest.Roles = []string{"reader"}
	leave(t, h.config.State, []hostapi.SignedDocument{kit.Signed(7, newest, h.Signing)})
	h.serial = 7
	h.once()
	h.wantLine("documents: taken from an identity file: manifest of ursula, serial 7")
	if _, err := os.Stat(h.config.State.IdentityFile()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an identity file of documents alone is still there: %v", err)
	}
	h.forge.SetDown(false)
	h.need("cert-node").Generation++
	h.serial++
	h.deploy()
	h.once()
	if s := h.state("cert-node"); s.Provider != "forge" || h.file("cert-node", hostdir.FileSVID) == string(chain) {
		t.Errorf("not renewed: %+v", s)
	}
}

// TestEnrolledKilled kills activation before each change that it makes for an identity file. The
// next run completes it, without a network.
func TestEnrolledKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	const together = 10
	var done atomic.Bool
	for from := int64(0); !done.Load() && !t.Failed(); from += together {
		t.Run(fmt.Sprint("from ", from), func(t *testing.T) {
			for at := from; at < from+together; at++ {
				t.Run(fmt.Sprint(at), func(t *testing.T) {
					t.Parallel()
					if enrolledKilledAt(t, at) {
						if done.Store(true); at < 15 {
							t.Errorf("only %d steps", at)
						}
					}
				})
			}
		})
	}
}

// enrolledKilledAt reports whether activation completed before it was killed.
func enrolledKilledAt(t *testing.T, at int64) (done bool) {
	c := NewCluster(t)
	m := c.Manifest()
	m.Providers["forge"] = Provides("forge", "127.0.0.1:1")
	v := victim{State: filepath.Join(t.TempDir(), "state"), Closure: t.TempDir(), HostKey: c.HostKey, Told: t.TempDir(), At: at}
	m.Needs = []document.Need{kit.CertNeed(Node, "forge")}
	kit.Write(v.Closure, kit.Document(1, m))
	m.Needs = []document.Need{kit.CertNeed(Service, "forge"), kit.CertNeed(Node, "forge")}
	node, service := c.CA.Issue(Node, time.Hour), c.CA.Issue(Service, time.Hour)
	layout := hostdir.Layout(v.State)
	leave(t, layout, []hostapi.SignedDocument{kit.Signed(2, m, c.Signing)}, node, service)
	code, out := v.start(t)
	if done = code == event.ExitFulfilled; !done && code != -1 {
		t.Fatalf("step %d: exit %d\n%s", at, code, out)
	}
	v.At = 1 << 40
	if code, out = v.start(t); code != event.ExitFulfilled {
		t.Fatalf("step %d: after it: exit %d\n%s", at, code, out)
	}
	for _, svid := range []*tls.Certificate{node, service} {
		id, _ := trust.LeafID(svid.Leaf)
		n := kit.CertNeed(id, "forge")
		got, err := hostdir.LoadSVID(layout.Need(n.ID), id)
		if err != nil || !got.Cert.Leaf.Equal(svid.Leaf) {
			t.Errorf("step %d: %s: %v\n%s", at, n.ID, err, out)
		}
		if s, err := layout.NeedState(n.ID); err != nil || s.State != hostdir.NeedFulfilled {
			t.Errorf("step %d: %s: %+v, %v", at, n.ID, s, err)
		}
	}
	if d, err := layout.Manifest(); err != nil || d.Envelope.Serial != 2 {
		t.Errorf("step %d: serial %d, %v", at, d.Envelope.Serial, err)
	}
	_ = filepath.WalkDir(v.State, func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".new") || path == layout.IdentityFile() {
			t.Errorf("step %d: left over: %s", at, path)
		}
		return err
	})
	return done
}
