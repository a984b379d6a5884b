package localapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/agent/localapi"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

type host struct {
	*testing.T
	*agenttest.Cluster
	localapi.Config
	url, admin string // addresses of the two handlers
}

// newHost returns the host ursula, whose journals come from a script in place of journalctl.
func newHost(t *testing.T, journal string) *host {
	c := agenttest.NewCluster(t, "unix:/run/florete-host.sock")
	dir := t.TempDir()
	program := filepath.Join(dir, "journal")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+journal), 0o755); err != nil {
		t.Fatal(err)
	}
	h := &host{T: t, Cluster: c, Config: localapi.Config{Layout: c.Ursula.Layout, Agent: c.Ursula.Socket(), Refetch: dir, Journal: program}}
	for to, handler := range map[*string]http.Handler{&h.url: localapi.ReadHandler(h.Config), &h.admin: localapi.AdminHandler(h.Config)} {
		s := httptest.NewServer(handler)
		t.Cleanup(s.Close)
		*to = s.URL
	}
	return h
}

func (h *host) ask(method, path string, header ...string) (int, string, error) {
	h.Helper()
	url := h.url
	if strings.HasPrefix(path, "/refetch") || strings.HasPrefix(path, "/rotate") || strings.HasPrefix(path, "/end") {
		url = h.admin
	}
	req, err := http.NewRequestWithContext(h.Context(), method, url+path, nil)
	if err != nil {
		h.Fatal(err)
	}
	req.Host = "outline.demo.flor.rete"
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

func (h *host) want(code int, text, method, path string, header ...string) {
	h.Helper()
	got, body, err := h.ask(method, path, header...)
	if got != code || !strings.Contains(body, text) || err != nil {
		h.Errorf("%s %s: %d %q %v, want %d with %q", method, path, got, body, err, code, text)
	}
}

func TestAnswers(t *testing.T) {
	h := newHost(t, `echo "$@"`)
	doc, err := h.Layout.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := doc.Bytes()
	if _, got, _ := h.ask("GET", "/manifest"); got != string(body) {
		t.Errorf("manifest: got %s", got)
	}
	h.want(200, "--unit=outline.service --lines=200 ", "GET", "/journal/outline")
	h.want(200, "--unit=florete-agent.service --lines=7 ", "GET", "/journal/florete-agent.service?lines=7")
	h.want(200, " --follow", "GET", "/journal/outline?follow=1")
	if _, text, _ := h.ask("GET", "/journal/outline?follow=0"); strings.Contains(text, "--follow") {
		t.Errorf("followed: %q", text)
	}

	h.want(202, "need cert-node: ", "POST", "/refetch?need=cert-node")
	fi, err := os.Stat(filepath.Join(h.Refetch, "cert-node"))
	if err != nil || time.Since(fi.ModTime()) > time.Minute {
		t.Errorf("%v, %v", fi, err)
	}
	old := time.Now().Add(-time.Hour)
	os.Chtimes(filepath.Join(h.Refetch, "cert-node"), old, old)
	h.want(202, "", "POST", "/refetch?need=cert-node")
	if fi, _ := os.Stat(filepath.Join(h.Refetch, "cert-node")); !fi.ModTime().After(old) {
		t.Error("the second request left no trace")
	}
}

// TestNames checks that the API refuses a web page whose own name resolves to the address of the
// API (DNS rebinding).
func TestNames(t *testing.T) {
	h := newHost(t, "echo here")
	for _, host := range []string{"evil.example", "evil.example:80", "127.0.0.1", "localhost", "outline.demo.flor.rete.evil.example", "demo.flor.rete", "[::1]:80"} {
		h.want(421, "want the name of this service", "GET", "/manifest", "Host", host)
		h.want(421, "want the name of this service", "GET", "/status", "Host", host)
		h.want(421, "want the name of this service", "GET", "/journal/outline", "Host", host)
		h.want(421, "want the name of this service", "POST", "/refetch?need=cert-node", "Host", host, "Origin", "http://"+host)
	}
	for _, origin := range []string{"http://evil.example", "null", "http://127.0.0.1", "http://wiki.demo.flor.rete"} {
		h.want(403, "", "GET", "/journal/outline", "Origin", origin)
		h.want(403, "", "POST", "/refetch?need=cert-node", "Origin", origin)
	}
	if _, err := os.Stat(filepath.Join(h.Refetch, "cert-node")); err == nil {
		t.Error("a refused request was carried out")
	}
	for _, host := range []string{"outline.demo.flor.rete:80", "Outline.Demo.flor.rete", "outline.demo.flor.rete."} {
		h.want(200, "here", "GET", "/journal/outline", "Host", host, "Origin", "http://outline.demo.flor.rete")
		h.want(202, "", "POST", "/refetch?need=cert-node", "Host", host)
	}
	// A service that is not behind a Unix socket is not this API.
	h.Publish.Publish[0].Upstream = "127.0.0.1:1"
	h.AcceptUrsula()
	h.want(421, "", "GET", "/manifest")
}

// TestRefetchFollowsNoLinkOut checks that Refetch does not follow symbolic links out of the
// directory. The caller may be root, and another account owns the directory.
func TestRefetchFollowsNoLinkOut(t *testing.T) {
	outside, dir := filepath.Join(t.TempDir(), "shadow"), t.TempDir()
	if err := os.WriteFile(outside, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "cert-node")); err != nil {
		t.Fatal(err)
	}
	if err := localapi.Refetch(document.Manifest{Needs: []document.Need{{ID: "cert-node"}}}, dir, "cert-node"); err == nil {
		t.Error("a link that leads out was followed")
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "kept" {
		t.Errorf("outside is %q, %v", b, err)
	}
}

func TestRefuses(t *testing.T) {
	h := newHost(t, `echo never`)
	h.want(404, `unit "sshd": want one of florete-activate, florete-agent, florete-credentials, florete-host, florete-hosts-file, outline`, "GET", "/journal/sshd")
	h.want(404, `unit "--file=x"`, "GET", "/journal/--file=x")
	h.want(400, `lines "1000000": want 1 to 10000`, "GET", "/journal/outline?lines=1000000")
	h.want(400, `lines "-f"`, "GET", "/journal/outline?lines=-f")
	h.want(404, `no such need "../x": this host has cert-node, cert-service-outline`, "POST", "/refetch?need=../x")
	h.want(404, `no such need "x"`, "POST", "/rotate?need=x")
	h.want(400, `need "cert-node": no secret to rotate`, "POST", "/rotate?need=cert-node")
	h.want(403, "", "POST", "/rotate?need=cert-node", "Origin", "https://elsewhere.example")
	h.want(403, "no service publishes", "POST", "/end?session=x", "X-Forwarded-Client-Cert", "URI="+agenttest.Bob.String())
	h.want(400, `follow "yes": want 1`, "GET", "/journal/outline?follow=yes")
	h.want(405, "", "GET", "/refetch?need=cert-node")
	h.want(403, "", "POST", "/refetch?need=cert-node", "Origin", "https://elsewhere.example")
	h.want(503, "is flor agent run running?", "GET", "/status")
	newHost(t, "exit 1").want(503, "journal: exit status 1", "GET", "/journal/outline")
	os.RemoveAll(string(h.Layout))
	h.want(503, "no such file", "GET", "/manifest")
	h.want(503, "no such file", "POST", "/refetch?need=cert-node")

	h = newHost(t, `echo never`)
	h.url, h.admin = h.admin, h.url
	for _, path := range []string{"/manifest", "/status", "/journal/outline"} {
		h.want(404, "", "GET", path)
	}
	h.want(404, "", "POST", "/refetch?need=cert-node")
	h.want(404, "", "POST", "/rotate?need=cert-node")
}

// TestRotate checks that a request to rotate a secret and a request to refetch it use different
// files.
func TestRotate(t *testing.T) {
	dir := t.TempDir()
	m := document.Manifest{Needs: []document.Need{{ID: "oidc-outline", Kind: "oidc"}}}
	for _, leave := range []func(document.Manifest, string, string) error{localapi.Rotate, localapi.Refetch} {
		if err := leave(m, dir, "oidc-outline"); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{hostdir.RotateFile("oidc-outline"), "oidc-outline"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestInstance checks that a caller cannot read the journals of the other cluster that the host
// belongs to.
func TestInstance(t *testing.T) {
	h := newHost(t, `echo "$@"`)
	h.Instance = "blue"
	s := httptest.NewServer(localapi.ReadHandler(h.Config))
	t.Cleanup(s.Close)
	h.url = s.URL
	h.want(200, "--unit=florete_blue-agent.service ", "GET", "/journal/florete_blue-agent")
	h.want(404, `unit "florete-agent": want one of florete_blue-activate, `, "GET", "/journal/florete-agent")
}

func TestJournalIsBounded(t *testing.T) {
	cut := func(script string) {
		t.Helper()
		h := newHost(t, script)
		if _, body, err := h.ask("GET", "/journal/outline"); err == nil || len(body) > 16<<20 {
			t.Errorf("%s: %d bytes, %v, want an answer that is cut", script, len(body), err)
		}
	}
	cut("exec cat /dev/zero")
	cut("echo some; exit 1")

	dir := t.TempDir()
	h := newHost(t, fmt.Sprintf("touch %s/$$; exec sleep 60", dir))
	ctx, cancel := context.WithCancel(t.Context())
	for range 4 {
		go func() {
			req, _ := http.NewRequestWithContext(ctx, "GET", h.url+"/journal/outline", nil)
			req.Host = "outline.demo.flor.rete"
			if res, err := http.DefaultClient.Do(req); err == nil {
				res.Body.Close()
			}
		}()
	}
	running := func() int { all, _ := os.ReadDir(dir); return len(all) }
	kit.Eventually(t, "four programs to run", func() bool { return running() == 4 })
	h.want(503, "others read journals", "GET", "/journal/outline")
	cancel()
}

// TestFollow checks that a caller who follows a journal receives each line when it is written. When
// the caller stops reading, journalctl ends.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	h := newHost(t, fmt.Sprintf("touch %[1]s/$$; echo first; while [ ! -e %[1]s/go ]; do sleep 0.01; done; echo second; exec sleep 60", dir))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", h.url+"/journal/outline?follow=1", nil)
	req.Host = "outline.demo.flor.rete"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	for _, want := range []string{"first\n", "second\n"} {
		if line, err := in.ReadString('\n'); line != want || err != nil {
			t.Fatalf("got %q, %v, want %q", line, err, want)
		}
		os.WriteFile(filepath.Join(dir, "go"), nil, 0o644)
	}
	cancel()
	all, _ := filepath.Glob(filepath.Join(dir, "[0-9]*"))
	if len(all) != 1 {
		t.Fatalf("programs %v, want one", all)
	}
	kit.Eventually(t, "the program to end", func() bool {
		_, err := os.Stat("/proc/" + filepath.Base(all[0]))
		return err != nil
	})
}

// TestThroughTheForwarder uses the API as an operator does. The API is published from a Unix
// socket, and the callers are identities in the allow list.
func TestThroughTheForwarder(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "host.sock")
	h := newHost(t, "")
	h.Publish.Publish[0].Upstream = "unix:" + socket
	h.AcceptUrsula()
	ln, err := status.Listen(socket, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- localapi.Serve(ctx, ln, localapi.ReadHandler(h.Config)) }()
	agents := make(chan error, 2)
	for _, x := range []*agenttest.Host{h.Ursula, h.Laptop} {
		go func() {
			agents <- forward.Run(ctx, forward.Config{Layout: x.Layout, Socket: x.Socket(), Log: slog.New(slog.DiscardHandler), Grace: time.Millisecond})
		}()
	}
	h.url = "http://" + h.Local
	var text string
	kit.Succeeds(t, "the status of ursula", func() error {
		c, err := net.Dial("tcp", h.Local)
		if err != nil {
			return err
		}
		defer c.Close()
		fmt.Fprint(c, "GET /status HTTP/1.0\r\nHost: outline.demo.flor.rete\r\n\r\n")
		b, err := io.ReadAll(c)
		if text = string(b); !strings.Contains(text, `"host":"ursula"`) {
			return fmt.Errorf("got %q, %w", text, err)
		}
		return nil
	})
	cancel()
	for _, ended := range []chan error{served, agents, agents} {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
