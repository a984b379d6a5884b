package main

import (
	"context"
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

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/file"
	"github.com/florete/florete/providers/secret"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/kit/controltest"
	"github.com/florete/florete/tests/kit/providertest"
)

// TestSecretScript runs the stories of florctl secret and florctl tenant against the processes of a
// provider host. A proxy stands for the forwarder, and announces alice.
func TestSecretScript(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	alice, ursula := kit.ID("user/alice"), kit.ID("node/ursula")
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	run, socket := t.TempDir(), filepath.Join(t.TempDir(), "control.sock")
	e := providertest.NewEnv(t, "ursula")
	e.Policy.Operators = document.Operators{{ID: alice, Access: document.AccessWrite}}
	others := controltest.Others(t, e, run, me.Username, log)
	e.Runs(distribution.Name, struct{}{}, func(p *providertest.Env) server.AnyKind {
		return (&distribution.Settings{Socket: socket, Forwarder: me.Username, Run: run}).Kind(server.Process{
			Dir: p.Dir, Store: p.Store, Policies: p.Policies, Audit: server.NewAudit(p.Store, log), Logger: log,
		})
	})
	e.Start()

	as := agenttest.Announced{Socket: socket, Service: kit.ID("service/drhorrible/" + spiffe.ControlService)}
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
	socks := kit.SOCKSTo(forwarder.Listener.Addr().String())
	defer socks.Close()

	fetch := func(kind, need string, body any) hostapi.Answer {
		t.Helper()
		a, err := others[kind].Client(ursula).Do(t.Context(), hostapi.Path(kind), hostapi.Request{Need: need, Serial: providertest.Serial, Generation: 1, Body: kit.JSON(body)})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	made := fetch(secret.Name, "secret-node-mesh", controltest.Mesh)
	t.Run("story", func(t *testing.T) {
		scripts(t, "testdata/forwarder", func(env *testscript.Env) error {
			env.Setenv("HTTP_PROXY", "socks5h://"+socks.Addr().String())
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
