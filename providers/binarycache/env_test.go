package binarycache_test

import (
	"bytes"
	"crypto/sha256"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nix-community/go-nix/pkg/nar"
	"github.com/nix-community/go-nix/pkg/narinfo"
	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"github.com/nix-community/go-nix/pkg/nixbase32"
	"github.com/nix-community/go-nix/pkg/nixhash"
	"github.com/nix-community/go-nix/pkg/storepath"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/binarycache"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/kit/providertest"
)

var (
	alice, bob     = agenttest.Alice, agenttest.Bob
	laptop, ursula = agenttest.Laptop, agenttest.Ursula
	service        = kit.ID("service/ursula/" + spiffe.CacheService)
)

const name = "florete-cache.ursula.demo.flor.rete"

// env is a config provider to whose cache alice writes; bob and the nodes read there.
type env struct {
	*providertest.Env
	t      *testing.T
	key    signature.SecretKey
	socket string
	config binarycache.Config
}

func start(t *testing.T) *env {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	e := &env{Env: providertest.NewEnv(t, "laptop"), t: t, key: kit.SigningKey("demo-1"), socket: filepath.Join(t.TempDir(), "cache.sock")}
	e.Policy.Trust.SigningKeys = []string{e.key.ToPublicKey().String()}
	e.Policy.Cache = document.Operators{{ID: laptop, Access: document.AccessRead}, {ID: ursula, Access: document.AccessRead},
		{ID: alice, Access: document.AccessWrite}, {ID: bob, Access: document.AccessRead}}
	e.Grant(laptop, "config-documents", "config", struct{}{})
	e.Runs("config", struct{}{}, func(p *providertest.Env) server.AnyKind {
		log := slog.New(slog.NewTextHandler(t.Output(), nil))
		e.config = binarycache.Config{Dir: filepath.Join(p.Dir, "cache"), Archive: archive.Archive{Store: p.Store}, Logger: log}
		return (&distribution.Settings{Cache: e.socket, Forwarder: me.Username}).Kind(server.Process{
			Dir: p.Dir, Store: p.Store, Policies: p.Policies, Audit: server.NewAudit(p.Store, log), Logger: log,
		})
	})
	e.Start()
	e.listening()
	return e
}

func (e *env) listening() {
	e.t.Helper()
	kit.Eventually(e.t, "a socket", func() bool {
		c, err := net.Dial("unix", e.socket)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// publish has the documents of a host name a closure.
func (e *env) publish(serial int64, closures map[string]string) {
	e.t.Helper()
	hosts := map[string][]document.Document{}
	for _, host := range []string{"laptop", "ursula"} {
		h := agenttest.NewHost(e.t, host, e.CA)
		h.Serial = serial - 1
		h.Accept(document.Forwarder{})
		d, err := h.Layout.Manifest()
		if err != nil {
			e.t.Fatal(err)
		}
		hosts[host] = []document.Document{d}
	}
	if err := archive.NameClosures(hosts, closures); err != nil {
		e.t.Fatal(err)
	}
	tree, err := archive.Sign(hosts, e.key, time.Now())
	if err != nil {
		e.t.Fatal(err)
	}
	providertest.Import(e.t, e.Store, e.key, tree)
}

// as returns the forwarder's way of calling.
func (e *env) as() agenttest.Announced {
	return agenttest.Announced{Socket: e.socket, Service: service}
}

// do sends a request of a caller.
func (e *env) do(caller spiffe.ID, method, path string, body []byte, header ...string) (int, string) {
	e.t.Helper()
	r, err := http.NewRequestWithContext(e.t.Context(), method, "http://"+name+path, bytes.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	status, b := e.as().Do(e.t, caller, r)
	return status, string(b)
}

// want sends a request that is to be answered so, with words in its body.
func (e *env) want(status int, words string, caller spiffe.ID, method, path string, body []byte, header ...string) string {
	e.t.Helper()
	got, text := e.do(caller, method, path, body, header...)
	if got != status || !strings.Contains(text, words) {
		e.t.Errorf("%s %s %s: %d %.300q, want %d %q", caller.Short(), method, path, got, text, status, words)
	}
	return text
}

// item is a store path, as Nix would make and send it.
type item struct {
	path, file string
	contents   []byte
	info       narinfo.NarInfo
}

// item makes a path whose contents are a text, signed.
func (e *env) item(label, text string, refs ...item) item {
	e.t.Helper()
	source := filepath.Join(e.t.TempDir(), "source")
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		e.t.Fatal(err)
	}
	var b bytes.Buffer
	if err := nar.DumpPath(&b, source); err != nil {
		e.t.Fatal(err)
	}
	sum, id := sha256.Sum256(b.Bytes()), sha256.Sum256([]byte(label+text))
	hash := nixhash.MustNewHashWithEncoding(nixhash.SHA256, sum[:], nixhash.NixBase32, true)
	i := item{contents: b.Bytes(), file: nixbase32.EncodeToString(sum[:]) + ".nar", path: nixbase32.EncodeToString(id[:20]) + "-" + label}
	i.info = narinfo.NarInfo{
		StorePath: storepath.StoreDir + "/" + i.path, URL: "nar/" + i.file, Compression: "none",
		FileHash: hash, FileSize: uint64(b.Len()), NarHash: hash, NarSize: uint64(b.Len()),
	}
	for _, r := range refs {
		i.info.References = append(i.info.References, r.path)
	}
	i.sign(e.key)
	return i
}

// pack is the path with contents that zstd compressed, whatever is signed of them.
func (i item) pack(contents []byte) item {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	i.contents = w.EncodeAll(contents, nil)
	sum := sha256.Sum256(i.contents)
	i.file = nixbase32.EncodeToString(sum[:]) + ".nar.zst"
	i.info.URL, i.info.Compression = "nar/"+i.file, "zstd"
	i.info.FileHash, i.info.FileSize = nixhash.MustNewHashWithEncoding(nixhash.SHA256, sum[:], nixhash.NixBase32, true), uint64(len(i.contents))
	return i
}

func (i *item) sign(key signature.SecretKey) {
	s, err := key.Sign(nil, i.info.Fingerprint())
	if err != nil {
		panic(err)
	}
	i.info.Signatures = []signature.Signature{s}
}

func (i item) hash() string     { return i.path[:32] }
func (i item) infoPath() string { return "/" + i.hash() + ".narinfo" }

// add sends a path as nix copy does.
func (e *env) add(all ...item) {
	e.t.Helper()
	for _, i := range all {
		e.want(200, "", alice, "PUT", "/nar/"+i.file, i.contents)
		e.want(200, "", alice, "PUT", i.infoPath(), []byte(i.info.String()))
	}
}

// files returns the files in the cache.
func (e *env) files() (all []string) {
	e.t.Helper()
	err := filepath.WalkDir(e.config.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, d.Name())
		}
		return err
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return all
}
