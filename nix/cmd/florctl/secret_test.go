package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/things-go/go-socks5/statute"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/agenttest"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/config"
	"github.com/florete/florete/providers/controltest"
	"github.com/florete/florete/providers/file"
	"github.com/florete/florete/providers/providertest"
	"github.com/florete/florete/providers/secret"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
)

// TestSecretScript runs the stories of florctl secret and florctl tenant against the processes of
// a provider host: a proxy is the forwarder, which announces alice.
func TestSecretScript(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	alice, ursula := kit.ID("user/alice"), kit.ID("node/ursula")
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	run, socket := t.TempDir(), filepath.Join(t.TempDir(), "control.sock")
	e := providertest.NewEnv(t, "ursula")
	e.Policy.Operators = florete.Operators{{ID: alice, Access: florete.AccessWrite}}
	others := controltest.Others(t, e, run, me.Username, log)
	e.Runs(config.Name, struct{}{}, func(p *providertest.Env) server.Kind {
		return (&config.Settings{Control: socket, Forwarder: me.Username, Run: run}).Kind(server.Process{
			Dir: p.Dir, Store: p.Store, Policies: p.Policies, Audit: server.NewAudit(p.Store, log), Logger: log,
		})
	})
	e.Start()

	as := agenttest.Announced{Socket: socket, Service: kit.ID("service/drhorrible/" + florete.ControlService)}
	forwarder := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", p.In.Host, p.In.Host
		},
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext:       func(context.Context, string, string) (net.Conn, error) { return as.Dial(alice) },
		},
	})
	defer forwarder.Close()

	fetch := func(kind, need string, body any) api.Answer {
		t.Helper()
		a, err := others[kind].Client(ursula).Do(t.Context(), api.Path(kind), api.Request{Need: need, Serial: providertest.Serial, Generation: 1, Body: kit.JSON(body)})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	made := fetch(secret.Name, "secret-node-mesh", controltest.Mesh)
	t.Run("story", func(t *testing.T) {
		scripts(t, "testdata/forwarder", func(env *testscript.Env) error {
			env.Setenv("HTTP_PROXY", "socks5h://"+socksTo(t, forwarder.Listener.Addr().String()))
			env.Setenv("http_proxy", "http://127.0.0.1:1")
			env.Setenv("PUBLIC", strings.TrimSpace(made.Values["public"]))
			return os.WriteFile(filepath.Join(env.WorkDir, "private"), []byte(strings.TrimSpace(made.Values["secret"])), 0o600)
		})
	})
	if t.Failed() {
		return
	}
	if got := fetch(file.Name, "file-wiki-smtp", controltest.File).Values["content"]; got != "battery staple\n" {
		t.Errorf("the host receives %d bytes, want those of the story", len(got))
	}
}

// socksTo is a SOCKS5 listener that connects to one address, whatever it is told (RFC 1928).
func socksTo(t *testing.T, address string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	carry := func(c net.Conn) {
		defer c.Close()
		if _, err := statute.ParseMethodRequest(c); err != nil {
			return
		}
		if _, err := c.Write([]byte{statute.VersionSocks5, statute.MethodNoAuth}); err != nil {
			return
		}
		if _, err := statute.ParseRequest(c); err != nil {
			return
		}
		to, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		defer to.Close()
		if _, err := c.Write(statute.Reply{Version: statute.VersionSocks5, Response: statute.RepSuccess, BndAddr: statute.AddrSpec{IP: net.IPv4zero, AddrType: statute.ATYPIPv4}}.Bytes()); err != nil {
			return
		}
		go func() {
			io.Copy(to, c)
			to.(*net.TCPConn).CloseWrite()
		}()
		io.Copy(c, to)
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go carry(c)
		}
	}()
	return ln.Addr().String()
}
