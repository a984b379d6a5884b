package publish_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/providertest"
	"github.com/florete/florete/providers/publish"
)

var now = time.Unix(1_784_011_430, 0)

// manifest is an unsigned one, as the compiler makes it.
func manifest(t *testing.T, host string, change func(*florete.Envelope, *florete.Manifest)) florete.Document {
	t.Helper()
	m := florete.Manifest{
		Cluster: "demo", Host: host, TrustDomain: "demo.flor",
		Identity:  florete.Identity{ID: providertest.ID("node/" + host)},
		Trust:     florete.Trust{Roots: []string{}, SigningKeys: []string{}},
		Roles:     []string{},
		Providers: map[string]map[string]florete.Provider{}, Needs: []florete.Need{},
		Forwarder: florete.Forwarder{Listen: []string{}, Publish: []florete.Published{}, Reach: []florete.Reachable{}, Callers: []florete.Caller{}, SOCKS: []florete.SOCKS{}},
	}
	e := florete.Envelope{Schema: florete.EnvelopeSchema, Format: florete.NewestFormat, Kind: florete.DocManifest, Serial: now.Unix(), Rev: "8eeec93"}
	change(&e, &m)
	body := providertest.JSON(m)
	e.Cluster, e.Host, e.Digest = m.Cluster, m.Host, florete.Digest(body)
	d, err := florete.Open(providertest.JSON(e), body, "")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func key(t *testing.T) signature.SecretKey {
	t.Helper()
	secret, _, err := signature.GenerateKeypair("demo-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func tree(t *testing.T, k signature.SecretKey, change func(*florete.Envelope, *florete.Manifest)) (publish.Tree, error) {
	t.Helper()
	return publish.Sign(map[string][]florete.Document{"ursula": {manifest(t, "ursula", change)}, "raishan": {manifest(t, "raishan", change)}}, k, now)
}

func TestPublish(t *testing.T) {
	k := key(t)
	parent := t.TempDir()
	dir := filepath.Join(parent, "published")
	neighbour := filepath.Join(parent, ".published-newer@1-1")
	if err := os.Mkdir(neighbour, 0o755); err != nil {
		t.Fatal(err)
	}
	for serial := range int64(4) {
		next, err := tree(t, k, func(e *florete.Envelope, _ *florete.Manifest) { e.Serial += serial })
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the same again is no change
			if err := next.Write(dir + "/"); err != nil {
				t.Fatal(err)
			}
		}
		for _, host := range []string{"ursula", "raishan"} {
			d, err := florete.Read(filepath.Join(dir, host), florete.DocManifest)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Verify([]string{k.ToPublicKey().String()}); err != nil {
				t.Error(err)
			}
			if d.Envelope.Serial != now.Unix()+serial {
				t.Errorf("%s: serial %d, want %d", host, d.Envelope.Serial, now.Unix()+serial)
			}
		}
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 4 { // the link, what it points at, the one before, the neighbour
		t.Errorf("left over: %v", entries)
	}
}

func TestRefused(t *testing.T) {
	k := key(t)
	dir := filepath.Join(t.TempDir(), "published")
	first, err := tree(t, k, func(*florete.Envelope, *florete.Manifest) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Write(dir); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*florete.Envelope, *florete.Manifest)
		want   string
	}{
		"future":  {func(e *florete.Envelope, _ *florete.Manifest) { e.Serial += 601 }, "more than 10m0s ahead of the clock"},
		"older":   {func(e *florete.Envelope, _ *florete.Manifest) { e.Serial-- }, fmt.Sprintf("has serial %d, this is %d", now.Unix(), now.Unix()-1)},
		"another": {func(_ *florete.Envelope, m *florete.Manifest) { m.Roles = []string{"node"} }, "with the same serial"},
		"cluster": {func(e *florete.Envelope, m *florete.Manifest) { e.Serial++; m.Cluster = "prod" }, "has cluster demo, this is prod"},
	} {
		t.Run(name, func(t *testing.T) {
			next, err := tree(t, k, c.change)
			if err == nil {
				err = next.Write(dir)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want …%s…", err, c.want)
			}
			if d, err := florete.Read(filepath.Join(dir, "ursula"), florete.DocManifest); err != nil || d.Envelope.Serial != now.Unix() {
				t.Errorf("the published tree changed: %v, %v", d.Envelope, err)
			}
		})
	}
	for name, make := range map[string]func(path string) error{
		"file":      func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		other := filepath.Join(t.TempDir(), name)
		if err := make(other); err != nil {
			t.Fatal(err)
		}
		if err := first.Write(other); err == nil || !strings.Contains(err.Error(), "was not published") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestUmask: the provider is not who publishes, and reads all of it.
func TestUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	dir := filepath.Join(t.TempDir(), "published")
	next, err := tree(t, key(t), func(*florete.Envelope, *florete.Manifest) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Write(dir); err != nil {
		t.Fatal(err)
	}
	to, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(to, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o044 != 0o044 {
			t.Errorf("%s: mode %s", path, info.Mode())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
