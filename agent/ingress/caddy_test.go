package ingress

import (
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestCaddyKeys checks that only Caddy's account can read private keys. Caddy's configuration
// contains no key. No key is on disk once Caddy has loaded it. No other account may use the admin
// API.
func TestCaddyKeys(t *testing.T) {
	t.Parallel()
	ports := kit.Ports(2)
	s := newCaddy(t, ports[0], ports[1])
	s.start(t)
	caddy := s.Proxy.(*Caddy)
	crt, key, _ := certificate(t, "a.example")
	digest, ok := usable(crt, key)
	if !ok {
		t.Fatal("the pair of this test is none")
	}
	upstream := netip.MustParseAddrPort("127.0.0.1:1")
	sites := Sites{All: []Site{
		{Name: "a.example", Upstream: upstream, Certificate: crt, Key: key, Digest: digest},
		{Name: "b.example", Upstream: upstream, Certificate: crt, Key: key, Digest: digest},
	}}
	if changed, err := caddy.Apply(t.Context(), sites); err != nil || !changed {
		t.Fatal(changed, err)
	}
	if changed, err := caddy.Apply(t.Context(), sites); err != nil || changed {
		t.Error("the same again changes something", err)
	}
	config, err := caddy.call(t.Context(), http.MethodGet, "/config/apps/tls", nil)
	if err != nil || strings.Contains(string(config), "PRIVATE KEY") || !strings.Contains(string(config), "load_files") {
		t.Errorf("Caddy's configuration has %.300s, %v, want files", config, err)
	}
	if _, err := os.Lstat(caddy.handed()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("keys are still in %s: %v", caddy.handed(), err)
	}
	if err := os.Chmod(caddy.Admin, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := caddy.Apply(t.Context(), sites); err == nil || !strings.Contains(err.Error(), "mode 0666") {
		t.Errorf("a socket that every account may use: %v, want it refused", err)
	}
}

// TestCaddyHandsOver checks that the key files for Caddy belong to Caddy's account, and that no
// other account can read them.
func TestCaddyHandsOver(t *testing.T) {
	t.Parallel()
	agenttest.Root(t, "can give files to another account")
	const account = 64998
	c := &Caddy{Keys: filepath.Join(t.TempDir(), "keys")}
	crt, key, _ := certificate(t, "a.example")
	site := Site{Name: "a.example", Certificate: crt, Key: key, Digest: "0"}
	if err := c.hand(Sites{All: []Site{site}}, account); err != nil {
		t.Fatal(err)
	}
	handed, of := c.files(site)
	for path, mode := range map[string]fs.FileMode{c.handed(): 0o700, handed: 0o400, of: 0o400} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != account || info.Mode().Perm() != mode {
			t.Errorf("%s: account %d, mode %04o, want %d and %04o", path, uid, info.Mode().Perm(), account, mode)
		}
	}
}

// TestCaddyOnTCP checks that an admin API on TCP is refused, because it has no authentication. The
// error includes the remedy.
func TestCaddyOnTCP(t *testing.T) {
	for _, admin := range []string{"localhost:2019", "127.0.0.1:2019", ":2019", "", "admin.sock"} {
		c := &Caddy{Admin: admin}
		_, err := c.Apply(t.Context(), Sites{})
		if err == nil || !strings.Contains(err.Error(), `{"admin": {"listen": "unix//run/caddy/admin.sock"}}`) {
			t.Errorf("%q: %v, want the configuration to write", admin, err)
		}
	}
	c := &Caddy{Admin: filepath.Join(t.TempDir(), "none.sock")}
	if _, err := c.Apply(t.Context(), Sites{}); err == nil || !strings.Contains(err.Error(), "unix/"+c.Admin) {
		t.Errorf("no socket: %v", err)
	}
}
