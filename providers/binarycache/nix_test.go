package binarycache_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// network is two hosts whose forwarders run: ursula's publishes the cache, the laptop's
// has a SOCKS5 listener for each caller.
func (e *env) network() *agenttest.Cluster {
	e.t.Helper()
	c := agenttest.NewCluster(e.t, "127.0.0.1:1")
	c.Publish.Publish = []document.Published{{ID: service, Upstream: "unix:" + e.socket, Identity: document.ProxyV2,
		Allow: []document.Allow{{ID: laptop}, {ID: alice}, {ID: bob}}}}
	callers := []spiffe.ID{laptop, alice, bob}
	c.Reach.Reach = []document.Reachable{{ID: service, Callers: callers, Listen: agenttest.Loopback(), Endpoints: []document.Addresses{{c.Publish.Listen[0]}}}}
	c.Reach.Callers, c.Reach.SOCKS, c.SOCKS = nil, nil, map[spiffe.ID]string{}
	for _, id := range callers {
		at := agenttest.Loopback()
		c.Reach.Callers = append(c.Reach.Callers, document.Caller{ID: id, UIDs: []uint32{uint32(os.Getuid())}})
		c.Reach.SOCKS = append(c.Reach.SOCKS, document.SOCKS{ID: id, Listen: at})
		c.SOCKS[id] = at.String()
	}
	c.Ursula.Deliver(c.CA, service, time.Hour)
	c.Ursula.Accept(c.Publish, service)
	c.AcceptLaptop()
	for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		log := slog.New(slog.NewTextHandler(e.t.Output(), nil)).With("host", h.Name)
		go func() {
			done <- forward.Run(ctx, forward.Config{Layout: h.Layout, Socket: h.Socket(), Poll: time.Hour, Grace: time.Second, Log: log})
		}()
		e.t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				e.t.Errorf("agent: %v", err)
			}
		})
	}
	return c
}

// store is a Nix store of its own, and who its Nix calls the cache as.
type store struct {
	t         *testing.T
	dir, home string
	proxy     string
}

func newStore(t *testing.T, proxy string) store { return store{t, t.TempDir(), t.TempDir(), proxy} }

// nix runs a command of Nix, which is Debian's.
func (s store) nix(stdin string, args ...string) (string, error) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "NIX_REMOTE=local?root="+s.dir, "HOME="+s.home, "XDG_CACHE_HOME="+s.home,
		"ALL_PROXY=socks5h://"+s.proxy, "http_proxy=", "no_proxy=",
		"NIX_CONFIG=experimental-features = nix-command\nbuild-users-group =\nsubstituters =\nsandbox = false\ndownload-attempts = 1\n")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s store) must(stdin string, args ...string) {
	s.t.Helper()
	if out, err := s.nix(stdin, args...); err != nil {
		s.t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (s store) fails(words string, args ...string) {
	s.t.Helper()
	if out, err := s.nix("", args...); err == nil || !strings.Contains(out, words) {
		s.t.Errorf("%s: %v: %s, want %q", strings.Join(args, " "), err, out, words)
	}
}

// hold puts paths in the store, with their references.
func (s store) hold(items map[string]string, all ...item) {
	s.t.Helper()
	var db strings.Builder
	for _, i := range all {
		if err := os.MkdirAll(filepath.Join(s.dir, "nix", "store"), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, i.info.StorePath), []byte(items[i.path]), 0o444); err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&db, "%s\n%s\n%d\n\n%d\n", i.info.StorePath, hex.EncodeToString(i.info.NarHash.Digest()), i.info.NarSize, len(i.info.References))
		for _, r := range i.info.References {
			fmt.Fprintf(&db, "/nix/store/%s\n", r)
		}
	}
	s.must(db.String(), "nix-store", "--load-db")
}

// Stock Nix copies closures to the cache and from it, through the forwarders of two hosts.
func TestNix(t *testing.T) {
	if _, err := exec.LookPath("nix-store"); err != nil {
		t.Skip("NOT RUN: no nix-store in PATH, on Debian it is in the package nix-bin, which tests/run installs")
	}
	e := start(t)
	c := e.network()
	texts := map[string]string{}
	path := func(label, text string, refs ...item) item {
		i := e.item(label, text, refs...)
		texts[i.path] = text
		return i
	}
	glibc := path("glibc", strings.Repeat("glibc", 1<<18))
	bash := path("bash", "bash on glibc", glibc)
	system := path("nixos-system-laptop", "bash and glibc", bash, glibc)
	hidden := path("hidden", "of another host")
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(e.key.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	const at = "http://" + name
	trusted := []string{"--option", "trusted-public-keys", e.key.ToPublicKey().String()}

	operator := newStore(t, c.SOCKS[alice])
	operator.hold(texts, glibc, bash, system, hidden)
	intruder := newStore(t, c.SOCKS[bob])
	intruder.hold(texts, glibc)
	intruder.fails("user/bob may read here, want write", "nix", "copy", "--to", at+"?secret-key="+key, glibc.info.StorePath)
	operator.fails("want a signature by one of trust.signingKeys", "nix", "copy", "--to", at, glibc.info.StorePath)
	operator.must("", "nix", "copy", "--to", at+"?secret-key="+key, bash.info.StorePath)
	operator.must("", "nix", "copy", "--to", at+"?secret-key="+key+"&compression=zstd", system.info.StorePath)
	operator.must("", "nix", "copy", "--to", at+"?secret-key="+key+"&compression=none", hidden.info.StorePath)
	e.publish(1000, map[string]string{"laptop": system.info.StorePath})

	// A host whose store is empty, by each of the commands that fetch.
	for _, fetch := range [][]string{
		{"nix", "copy", "--from", at},
		{"nix", "build", "--no-link", "--option", "substituters", at},
		{"nix-store", "--realise", "--option", "substituters", at},
	} {
		host := newStore(t, c.SOCKS[laptop])
		host.must("", append(append(fetch, trusted...), system.info.StorePath)...)
		for _, i := range []item{glibc, bash, system} {
			if b, err := os.ReadFile(filepath.Join(host.dir, i.info.StorePath)); err != nil || string(b) != texts[i.path] {
				t.Errorf("%v: %s: %d bytes, %v", fetch, i.path, len(b), err)
			}
		}
	}
	from := append([]string{"nix", "copy", "--from", at}, trusted...)
	newStore(t, c.SOCKS[laptop]).fails(hidden.path, append(from, hidden.info.StorePath)...)
	other := kit.SigningKey("demo-1").ToPublicKey().String()
	newStore(t, c.SOCKS[laptop]).fails("signature", "nix", "copy", "--from", at, "--option", "trusted-public-keys", other, system.info.StorePath)

	// What the provider changes, the host refuses.
	found, err := filepath.Glob(filepath.Join(e.config.Dir, "nar", "*"))
	if err != nil || len(found) != 4 {
		t.Fatalf("%v, %v", found, err)
	}
	for _, file := range found {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tampered := newStore(t, c.SOCKS[laptop])
	if out, err := tampered.nix("", append(from, glibc.info.StorePath)...); err == nil {
		t.Errorf("changed contents were accepted: %s", out)
	}
}
