package binarycache_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/binarycache"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// Each reads what its documents name and what that needs, and finds nothing else.
func TestNamed(t *testing.T) {
	e := start(t)
	lib := e.item("lib", "lib")
	laptops, ursulas, nobodys := e.item("laptop", "system", lib), e.item("ursula", "system"), e.item("secret", "nobody's")
	e.add(lib, laptops, ursulas, nobodys)
	e.want(404, "florctl publish --closure", laptop, "GET", laptops.infoPath(), nil)
	e.publish(1000, map[string]string{"laptop": laptops.info.StorePath, "ursula": ursulas.info.StorePath})

	for _, c := range []struct {
		caller spiffe.ID
		reads  []item
	}{
		{laptop, []item{lib, laptops}}, {ursula, []item{ursulas}}, {bob, []item{lib, laptops, ursulas}}, {alice, []item{lib, laptops, ursulas, nobodys}},
	} {
		for _, i := range []item{lib, laptops, ursulas, nobodys} {
			contents := "/nar/" + i.hash() + "/" + i.file
			if !slices.ContainsFunc(c.reads, func(r item) bool { return r.path == i.path }) {
				e.want(404, "path "+i.hash(), c.caller, "GET", i.infoPath(), nil)
				e.want(404, "path "+i.hash(), c.caller, "GET", contents, nil)
				continue
			}
			e.want(200, "URL: "+contents[1:]+"\n", c.caller, "GET", i.infoPath(), nil)
			if got := e.want(200, "", c.caller, "GET", contents, nil); got != string(i.contents) {
				t.Errorf("contents of %s: %q", i.path, got)
			}
		}
	}
	e.want(200, "StoreDir: /nix/store\n", laptop, "GET", "/nix-cache-info", nil)
	if got := e.want(206, "", laptop, "GET", "/nar/"+lib.hash()+"/"+lib.file, nil, "Range", "bytes=8-"); got != string(lib.contents[8:]) {
		t.Errorf("the rest: %q", got)
	}
	// The path is another's; the contents are in both.
	e.want(404, "", laptop, "GET", "/nar/"+lib.hash()+"/"+nobodys.file, nil)
	e.want(404, "", laptop, "GET", "/log/"+lib.path, nil)
}

// TestVersions checks that the closures of every kept version stay available for a rollback.
func TestVersions(t *testing.T) {
	e := start(t)
	old, next := e.item("system", "old"), e.item("system", "next")
	e.add(old, next)
	e.publish(1000, map[string]string{"laptop": old.info.StorePath})
	e.publish(1001, map[string]string{"laptop": next.info.StorePath})
	e.want(200, "", laptop, "GET", old.infoPath(), nil)
	e.want(200, "", laptop, "GET", next.infoPath(), nil)
	// Going back to a version is to its closures, too: their documents differ by nothing else.
	if v, err := e.config.Archive.Versions(t.Context()); err != nil || len(v) != 2 || v[0].Content == v[1].Content {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestRefused checks that refused requests store nothing and that the audit log has the refusal.
func TestRefused(t *testing.T) {
	e := start(t)
	lib := e.item("lib", "lib")
	system := e.item("system", "system", lib)
	put := func(status int, words string, i item) {
		t.Helper()
		e.want(status, words, alice, "PUT", i.infoPath(), []byte(i.info.String()))
	}
	e.want(403, "node/laptop may read here, want write: give it a role with group nix-cache-write", laptop, "PUT", "/nar/"+lib.file, lib.contents)
	e.want(403, "user/bob may read here, want write", bob, "PUT", lib.infoPath(), nil)
	e.want(403, "may do nothing here, want read", kit.ID("user/mallory"), "GET", "/nix-cache-info", nil)
	e.want(400, "want those with the hash in the name", alice, "PUT", "/nar/"+lib.file, system.contents)
	e.want(400, "Content-Length 0", alice, "PUT", "/nar/"+lib.file, nil)
	put(400, "its contents "+lib.file+" are not here", lib)
	e.want(200, "", alice, "PUT", "/nar/"+system.file, system.contents)
	put(400, "refers to "+lib.path+", which is not here", system)
	for _, path := range []string{"/nar/..%2fx.narinfo", "/x.narinfo", "/" + lib.hash() + ".ls", "/realisations/a.doi", "/nix-cache-info", "/nar/" + lib.hash() + "/" + lib.file} {
		e.want(400, "accepts store paths alone", alice, "PUT", path, []byte("x"))
	}
	e.want(400, "narinfo of "+lib.hash(), alice, "PUT", lib.infoPath(), []byte("StorePath: x\n"))

	e.want(200, "", alice, "PUT", "/nar/"+lib.file, lib.contents)
	other := lib
	other.sign(kit.SigningKey("demo-1"))
	put(403, `signed by ["demo-1"], want a signature by one of trust.signingKeys`, other)
	other.info.Signatures = nil
	put(403, "signed by []", other)
	other = lib
	other.info.NarSize, other.info.FileSize = lib.info.NarSize-8, lib.info.NarSize-8
	other.sign(e.key)
	put(400, "bytes, its narinfo says", other)
	other = lib
	other.info.NarHash = system.info.NarHash
	other.info.Compression = "zstd"
	other.sign(e.key)
	put(400, "compressed by zstd", other)
	other.info.Compression = "lzip"
	put(400, `compression "lzip", want xz, zstd, bzip2 or none`, other)
	other = lib
	other.info.StorePath = "/nix/stare/" + lib.path
	other.sign(e.key)
	put(400, "StorePath", other)

	for _, contents := range [][]byte{system.contents, append(lib.contents, make([]byte, 1<<20)...)} {
		other := lib.pack(contents)
		e.want(200, "", alice, "PUT", "/nar/"+other.file, other.contents)
		put(400, "its narinfo is about", other)
		if err := os.Remove(filepath.Join(e.config.Dir, "nar", other.file)); err != nil {
			t.Fatal(err)
		}
	}

	if slices.ContainsFunc(e.files(), func(f string) bool { return strings.HasSuffix(f, ".narinfo") }) || len(e.files()) != 2 {
		t.Errorf("there are %v", e.files())
	}
	for _, r := range e.Rows() {
		if r.Kind == binarycache.Kind && r.Outcome == server.Granted {
			t.Errorf("row %+v", r)
		}
	}
	put(200, "", lib)
	rows := e.Rows()
	if r := rows[len(rows)-1]; r.Code != binarycache.CodeUpload || r.Caller != alice.String() || r.From != "192.0.2.7:4610" || r.Message != "added "+lib.info.StorePath {
		t.Errorf("row %+v", r)
	}
}

// An upload that is cut off leaves nothing, and neither does a process that is.
func TestInterrupted(t *testing.T) {
	e := start(t)
	lib := e.item("lib", strings.Repeat("lib", 1<<16))
	c, err := e.as().Dial(alice)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "PUT /nar/%s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", lib.file, name, len(lib.contents), lib.contents[:1<<16])
	kit.Eventually(t, "the first bytes", func() bool { return len(e.files()) == 1 })
	c.Close()
	kit.Eventually(t, "nothing", func() bool { return len(e.files()) == 0 })

	e.Stop()
	left := filepath.Join(e.config.Dir, "tmp", "nar-1234")
	if err := os.WriteFile(left, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.Start()
	e.listening()
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", left, err)
	}
	e.add(lib)
}

// A path that another key signed is sent anew, and its contents are not.
func TestKeysChange(t *testing.T) {
	e := start(t)
	lib := e.item("lib", "lib")
	e.add(lib)
	e.publish(1000, map[string]string{"laptop": lib.info.StorePath})
	e.want(200, "", laptop, "GET", lib.infoPath(), nil)
	e.key = kit.SigningKey("demo-2")
	e.Policy.Trust.SigningKeys = []string{e.key.ToPublicKey().String()}
	e.Publish(providertest.Serial + 1)
	kit.Eventually(t, "the new key", func() bool {
		status, _ := e.do(laptop, "GET", lib.infoPath(), nil)
		return status == http.StatusNotFound
	})
	e.want(404, "not signed by one of trust.signingKeys", alice, "GET", lib.infoPath(), nil)
	e.want(200, "", alice, "HEAD", "/nar/"+lib.file, nil)
	lib.sign(e.key)
	e.want(200, "", alice, "PUT", lib.infoPath(), []byte(lib.info.String()))
	e.want(200, "", laptop, "GET", lib.infoPath(), nil)
}

// TestSweep checks that paths outside the closures in documents are removed after a time, unless a
// writer has found them.
func TestSweep(t *testing.T) {
	e := start(t)
	lib, dep := e.item("lib", "lib"), e.item("dep", "dep")
	system, found, gone := e.item("system", "system", lib), e.item("found", "found", dep), e.item("gone", "gone", dep, lib)
	e.add(lib, dep, system, found, gone)
	e.publish(1000, map[string]string{"laptop": system.info.StorePath})
	loose := e.item("loose", "loose")
	e.want(200, "", alice, "PUT", "/nar/"+loose.file, loose.contents)
	old := time.Now().Add(-time.Hour)
	sweep := func(want ...item) {
		t.Helper()
		if err := binarycache.Sweep(t.Context(), e.config, time.Now().Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, i := range want {
			names = append(names, i.hash()+".narinfo", i.file)
		}
		if got := e.files(); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(names))) {
			t.Errorf("there are %v, want %v", got, names)
		}
	}
	for _, i := range []item{lib, dep, system, found, gone} {
		for _, f := range []string{i.hash() + ".narinfo", "nar/" + i.file} {
			if err := os.Chtimes(filepath.Join(e.config.Dir, f), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chtimes(filepath.Join(e.config.Dir, "nar", loose.file), old, old); err != nil {
		t.Fatal(err)
	}
	e.want(200, "", alice, "HEAD", found.infoPath(), nil)
	sweep(lib, dep, system, found)
	if err := os.Chtimes(filepath.Join(e.config.Dir, found.hash()+".narinfo"), old, old); err != nil {
		t.Fatal(err)
	}
	sweep(lib, system)
	// Something of a closure was lost: nix copy finds none of it, and sends it again.
	if err := os.Remove(filepath.Join(e.config.Dir, lib.hash()+".narinfo")); err != nil {
		t.Fatal(err)
	}
	e.Restart()
	e.listening()
	e.want(404, "not whole", alice, "GET", system.infoPath(), nil)
}

// A caller that stalls holds up no other.
func TestStalled(t *testing.T) {
	e := start(t)
	for range 40 {
		c, err := e.as().Dial(laptop)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "GET /nix-cache-info HTTP/1.1\r\n")
	}
	e.want(200, "StoreDir", ursula, "GET", "/nix-cache-info", nil)
}
