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
	"github.com/florete/florete/providers/publish"
	"github.com/florete/florete/tests/kit"
)

var now = time.Unix(1_784_011_430, 0)

// tree is the manifests of two hosts, signed.
func tree(k signature.SecretKey, serial int64, change ...func(*florete.Manifest)) (publish.Tree, error) {
	hosts := map[string][]florete.Document{}
	for _, host := range []string{"ursula", "raishan"} {
		m := florete.Manifest{
			Cluster: "demo", Host: host, TrustDomain: kit.Domain,
			Identity:  florete.Identity{ID: kit.ID("node/" + host)},
			Providers: map[string]map[string]florete.Provider{},
		}
		for _, f := range change {
			f(&m)
		}
		hosts[host] = []florete.Document{kit.Document(serial, m)}
	}
	return publish.Sign(hosts, k, now)
}

func TestPublish(t *testing.T) {
	k := kit.SigningKey("demo-1")
	parent := t.TempDir()
	dir := filepath.Join(parent, "published")
	neighbour := filepath.Join(parent, ".published-newer@1-1")
	if err := os.Mkdir(neighbour, 0o755); err != nil {
		t.Fatal(err)
	}
	for serial := range int64(4) {
		next, err := tree(k, now.Unix()+serial)
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
	k := kit.SigningKey("demo-1")
	dir := filepath.Join(t.TempDir(), "published")
	first, err := tree(k, now.Unix())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Write(dir); err != nil {
		t.Fatal(err)
	}
	same := func(*florete.Manifest) {}
	for name, c := range map[string]struct {
		later  int64
		change func(*florete.Manifest)
		want   string
	}{
		"future":  {601, same, "more than 10m0s ahead of the clock"},
		"older":   {-1, same, fmt.Sprintf("has serial %d, this is %d", now.Unix(), now.Unix()-1)},
		"another": {0, func(m *florete.Manifest) { m.Roles = []string{"node"} }, "with the same serial"},
		"cluster": {1, func(m *florete.Manifest) { m.Cluster = "prod" }, "has cluster demo, this is prod"},
	} {
		t.Run(name, func(t *testing.T) {
			next, err := tree(k, now.Unix()+c.later, c.change)
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
	next, err := tree(kit.SigningKey("demo-1"), now.Unix())
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
