package client

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/tests/kit"
)

// TestUnreachable checks that errors on the way to a config provider have a remedy.
func TestUnreachable(t *testing.T) {
	hangUp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangUp.Close()
	go func() {
		for {
			c, err := hangUp.Accept()
			if err != nil {
				return
			}
			_ = c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
	}()
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		if r.Method == http.MethodPost {
			_, _ = w.Write([]byte(`{"kind":"denied","code":"not-granted","message":"POST /v1/publish: user/bob may read here, want write","retryAfter":0}`))
		}
	}))
	defer answers.Close()
	for _, c := range []struct{ name, base, method, want string }{
		{"no name", "http://florete-control.drhorrible.demo.invalid", "GET", "this host does not know the name: run florctl on a host of the cluster"},
		{"no forwarder", "http://" + kit.Address(), "GET", "the forwarder of this host does not run: flor doctor, or use --via ssh"},
		{"no caller", "http://" + hangUp.Addr().String(), "GET", "the forwarder closed the connection: either this account acts as nobody who may call it (florctl who-can florete-control), or the config provider of drhorrible does not answer"},
		{"no provider", answers.URL, "GET", "answered with 403 Forbidden, want that of a config provider"},
		{"no right", answers.URL, "POST", "drhorrible: POST /v1/publish: user/bob may read here, want write"},
	} {
		_, err := New("drhorrible", c.base, &http.Client{}).request(context.Background(), c.method, "/v1/publish", nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// TestSocksListener checks that requests use only a SOCKS5 listener of this host, and no other
// proxy.
func TestSocksListener(t *testing.T) {
	for value, taken := range map[string]bool{
		"": false, "http://proxy.example.com:3128": false, "http://127.0.0.1:3128": false, "https://127.0.0.1": false, "127.0.0.1:1080": false,
		"socks5://proxy.example.com:1080": false, "socks5h://192.0.2.1:1080": false, "socks5h://localhost:1080": false,
		"socks5://127.105.0.7:1080": true, "socks5h://127.105.0.7:1080": true, "socks5h://[::1]:1080": true,
	} {
		for _, name := range []string{"HTTP_PROXY", "http_proxy"} {
			t.Run(name+" "+value, func(t *testing.T) {
				t.Setenv("HTTP_PROXY", "")
				t.Setenv("http_proxy", "")
				t.Setenv(name, value)
				u, err := socksListener(nil)
				if (u != nil) != taken || err != nil {
					t.Errorf("%v, %v", u, err)
				}
			})
		}
	}
}

// TestStopped checks that the unit of a config provider is examined over SSH, and that a host
// without systemd has no problem.
func TestStopped(t *testing.T) {
	dir := t.TempDir()
	const program = `#!/bin/sh
case "$*" in
"root@forge systemctl show "*" florete-provider-config.service") printf 'ActiveState=inactive\nSubState=dead\nStatusText=serving\n' ;;
"root@waits "*) printf 'ActiveState=active\nSubState=running\nStatusText=waiting for the SVID of this process\n' ;;
"root@blue systemctl show "*" florete_blue-provider-config.service") printf 'ActiveState=active\nSubState=running\nStatusText=serving\n' ;;
*) exit 127 ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	topology := compile.Topology{Hosts: map[string]compile.Host{"forge": {}, "waits": {}, "blue": {Instance: "blue"}, "none": {}}}
	providers := Providers{New("forwarder", "", nil)}
	for host := range topology.Hosts {
		providers = append(providers, newOverSSH(RootOf(topology, host)))
	}
	found := map[string]string{}
	for host, p := range providers.Stopped(t.Context()) {
		found[host] = p.Detail
	}
	want := map[string]string{
		"forge": "florete-provider-config.service is inactive (dead)",
		"waits": "florete-provider-config.service is active (waiting for the SVID of this process)",
	}
	if !maps.Equal(found, want) {
		t.Errorf("got %q, want %q", found, want)
	}
}
