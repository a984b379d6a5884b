package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/auditview"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/tlog"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// TestUnread checks that logs that are not read are named, if their kinds have hosts.
func TestUnread(t *testing.T) {
	forge := compile.Provider{Hosts: []string{"forge"}}
	topology := compile.Topology{Providers: map[string]compile.Provider{"oidc": forge, "config": forge, "cert": forge, "tls": {}}}
	overSSH := Providers{newOverSSH(RootOf(compile.Topology{}, "forge"))}
	for want, providers := range map[string]Providers{"cert oidc": {New("forge", "", nil)}, "": overSSH} {
		if got := strings.Join(providers.Unread(topology), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// host is a provider host whose processes of kinds cert and config have a log each.
type host struct {
	*Provider // as root of the host calls it
	envs      map[string]*providertest.Env
}

func startHost(t *testing.T) *host {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	issuing := providertest.NewEnv(t, "ursula")
	documents := issuing.Beside(issuing.Policy.Host)
	documents.Runs("config", struct{}{}, func(p *providertest.Env) server.AnyKind {
		return distribution.New(archive.Archive{Store: p.Store}).Kind()
	})
	h := &host{envs: map[string]*providertest.Env{"cert": issuing, "config": documents}}
	for kind, e := range h.envs {
		e.Logged = true
		e.Start()
		kit.Succeeds(t, "the log of "+kind, func() error { _, _, err := e.Log.Checkpoint(t.Context()); return err })
	}
	api := (&distribution.Settings{}).Control(
		server.Process{Dir: documents.Dir, Store: documents.Store, Policies: documents.Policies, Audit: server.NewAudit(documents.Store, logger), Logger: logger},
		func() (map[string]tlog.Local, error) {
			all := map[string]tlog.Local{}
			for kind, e := range h.envs {
				all[kind] = e.Log.Local()
			}
			return all, nil
		})
	h.Provider = New("drhorrible", "http://drhorrible", &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { _ = control.ServeAccount(theirs, "root", api) }()
			return ours, nil
		},
		MaxConnsPerHost: 1, // as over SSH
	}})
	t.Cleanup(h.http.CloseIdleConnections)
	return h
}

// decide writes a row about a need into the log of a kind.
func (h *host) decide(t *testing.T, kind string, at time.Time, need string) {
	t.Helper()
	row := server.Row{Time: at.UTC(), Kind: kind, Need: need, Caller: kit.ID("node/ursula").String(), Outcome: server.Granted}
	if err := server.NewAudit(h.envs[kind].Store, slog.New(slog.DiscardHandler)).Write(t.Context(), row); err != nil {
		t.Fatal(err)
	}
}

// run runs a mode, and returns its output.
func run(ctx context.Context, p Providers, m auditview.Mode, out interface{ Write([]byte) (int, error) }) error {
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetOut(out)
	return p.RunMode(cmd, &m, &auditview.Filter{}, true)
}

// TestSeveralKinds checks that root on a host reads the rows of all kinds as one log, however many
// pages each has.
func TestSeveralKinds(t *testing.T) {
	h := startHost(t)
	begin := time.Now().Add(time.Minute)
	var want []string
	for i := range 250 {
		kind := "cert"
		if i%5 == 0 || i > 200 {
			kind = "config"
		}
		need := fmt.Sprint(kind, i)
		h.decide(t, kind, begin.Add(time.Duration(i)*time.Second), need)
		want = append(want, need)
	}
	log, end := Providers{h.Provider}.Audit(t.Context(), auditview.Moment{Time: begin.Add(-time.Second)})
	var got []string
	for r, err := range log {
		if err != nil || r.At != "drhorrible" || !strings.HasPrefix(r.Need, r.Kind) {
			t.Fatalf("%+v, %v", r, err)
		}
		got = append(got, r.Need)
	}
	if err := end(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// TestVerifyKinds checks that the log of each kind is verified locally, and that an edited row is
// found.
func TestVerifyKinds(t *testing.T) {
	h := startHost(t)
	at := time.Now()
	h.decide(t, "cert", at, "cert-node")
	verdicts := func() (map[string]tlog.Verdict, error) {
		var out bytes.Buffer
		err := run(t.Context(), Providers{h.Provider}, auditview.Mode{Verify: true}, &out)
		all := map[string]tlog.Verdict{}
		for line := range bytes.Lines(out.Bytes()) {
			var v tlog.Verdict
			if e := json.Unmarshal(line, &v); e != nil {
				t.Fatal(e)
			}
			all[v.Log] = v
		}
		return all, err
	}
	kit.Succeeds(t, "both logs to be verified", func() error {
		all, err := verdicts()
		for kind, e := range h.envs {
			if v := all[kit.Domain+"/"+kind+"/drhorrible"]; len(v.Faults) > 0 || int(v.Rows) != len(e.Rows()) {
				return fmt.Errorf("%s: %+v, %w", kind, v, err)
			}
		}
		return err
	})
	proof := auditview.Mode{Proof: at.UTC().Format(time.RFC3339Nano)}
	var out bytes.Buffer
	var p tlog.Proof
	if err := run(t.Context(), Providers{h.Provider}, proof, &out); err != nil || json.Unmarshal(out.Bytes(), &p) != nil || p.Row == nil || !strings.Contains(*p.Row, "cert-node") {
		t.Errorf("%v: %s", err, &out)
	}
	proof.Proof = "2020-01-01T00:00:00Z"
	if err := run(t.Context(), Providers{h.Provider}, proof, &out); !errors.Is(err, tlog.ErrNoRow) {
		t.Error(err)
	}

	entries, err := h.envs["cert"].Store.Page(t.Context(), server.AuditPrefix, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	last := entries[len(entries)-1]
	if _, err := h.envs["cert"].Store.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(last.Key, bytes.ReplaceAll(last.Value, []byte("ursula"), []byte("mallory")))}}); err != nil {
		t.Fatal(err)
	}
	all, err := verdicts()
	if cert := all[kit.Domain+"/cert/drhorrible"]; !errors.Is(err, auditview.ErrNotVerified) || cert.Edited != 1 || len(all[kit.Domain+"/config/drhorrible"].Faults) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestFollowKinds checks that rows of all kinds are printed as they are written, even if other
// providers do not answer.
func TestFollowKinds(t *testing.T) {
	h := startHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	var out lines
	ended := make(chan error, 1)
	down := New("spare", "http://spare", &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("spare is down") },
	}})
	go func() { ended <- run(ctx, Providers{down, h.Provider}, auditview.Mode{Follow: true}, &out) }()
	for kind := range maps.Keys(h.envs) {
		kit.Eventually(t, "a row of "+kind, func() bool { // a row is followed that comes after it has begun
			h.decide(t, kind, time.Now(), "followed-"+kind)
			return strings.Contains(out.String(), "followed-"+kind)
		})
	}
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "spare is down") {
		t.Error(err)
	}
}

// lines collects what is written by another goroutine.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestOneDown checks that a provider that is down does not prevent reading the logs of the others.
func TestOneDown(t *testing.T) {
	h := startHost(t)
	at := time.Now()
	h.decide(t, "cert", at, "cert-node")
	down := New("spare", "http://spare", &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("spare is down") },
	}})
	both := Providers{down, h.Provider}
	kit.Succeeds(t, "a proof", func() error {
		return run(t.Context(), both, auditview.Mode{Proof: at.UTC().Format(time.RFC3339Nano)}, new(bytes.Buffer))
	})
	var out bytes.Buffer
	if err := run(t.Context(), both, auditview.Mode{Verify: true}, &out); err == nil || !strings.Contains(err.Error(), "spare is down") || bytes.Count(out.Bytes(), []byte("\n")) != 2 {
		t.Errorf("%v: %s", err, &out)
	}
}
