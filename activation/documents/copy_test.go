package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// damage changes one byte of a file, as a disk error would.
func damage(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	overwrite(t, path, string(b))
}

// rooted returns a manifest with other roots.
func (o *origins) rooted(role string, roots ...string) document.Manifest {
	m := o.version(role)
	m.Trust.Roots = roots
	return m
}

// TestDamaged checks that damaged documents are replaced by the copy, else by the newest good
// generation, else by an older closure if that does not bring back a removed root, and that the
// network delivers the lost documents again.
func TestDamaged(t *testing.T) {
	was, is := kit.NewCA().RootPEM(), kit.NewCA().RootPEM()
	both := []string{was, is}
	inForce := func(o *origins) string { return hostdir.Current(o.layout.Documents()) }
	inCopy := func(o *origins) string { return hostdir.Current(o.layout.DocumentsCopy()) }
	for name, c := range map[string]struct {
		first, then, last []string // roots of serial 1, the closure's, of 2 and of 3
		spoil             func(o *origins)
		serial            int64 // zero for an error
	}{
		"manifest": {both, both, both, func(o *origins) { damage(t, filepath.Join(inForce(o), "manifest.json")) }, 3},
		"envelope": {both, both, both, func(o *origins) { damage(t, filepath.Join(inForce(o), document.EnvelopeFile(document.DocManifest))) }, 3},
		"removed":  {both, both, both, func(o *origins) { os.Remove(filepath.Join(inForce(o), "manifest.json")) }, 3},
		"record":   {both, both, both, func(o *origins) { overwrite(t, o.layout.State(), "{") }, 3},
		"and its copy": {both, both, both, func(o *origins) {
			damage(t, filepath.Join(inForce(o), "manifest.json"))
			damage(t, filepath.Join(inCopy(o), "manifest.json"))
		}, 2},
		"after a root was retired": {[]string{was}, both, []string{is}, func(o *origins) {
			damage(t, filepath.Join(inForce(o), "manifest.json"))
			damage(t, filepath.Join(inCopy(o), "manifest.json"))
		}, 0},
		"all but the closure": {[]string{was}, both, both, func(o *origins) {
			damage(t, filepath.Join(inForce(o), "manifest.json"))
			damage(t, filepath.Join(inCopy(o), "manifest.json"))
			for _, l := range []string{o.layout.Documents(), o.layout.DocumentsCopy()} {
				damage(t, filepath.Join(l, "gen-2", "manifest.json"))
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigins(t)
			o.deploy(kit.Document(1, o.rooted("a", c.first...)))
			o.open()
			o.wantAccepted(o.accept(kit.Signed(2, o.rooted("b", c.then...), o.Signing)))
			last := kit.Signed(3, o.rooted("c", c.last...), o.Signing)
			o.wantAccepted(o.accept(last))
			o.want(3, "c")
			c.spoil(o)
			s, note, err := Open(o.layout, o.closure, nil)
			if c.serial == 0 {
				if err == nil || !strings.Contains(err.Error(), "deploy this host's newest bundle or system") {
					t.Fatal(note, err)
				}
				o.deploy(kit.Document(2, o.rooted("b", c.last...))) // as an operator does
				o.open()
				o.want(2, "b")
				return
			}
			if err != nil || s.Set().Document.Envelope.Serial != c.serial || note == "unchanged" {
				t.Fatalf("%q, %v, serial %d is in force, want %d", note, err, s.Set().Document.Envelope.Serial, c.serial)
			}
			o.store = s
			o.wantAccepted(o.accept(last))
			o.want(3, "c")
		})
	}
}
