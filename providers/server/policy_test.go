package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// buffer collects log lines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// has waits until a text has been logged n times.
func (b *buffer) has(t *testing.T, what string, n int) {
	t.Helper()
	kit.Succeeds(t, "lines of the log", func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if text := b.b.String(); strings.Count(text, what) < n {
			return fmt.Errorf("never logged %d times: %s; logged:\n%s", n, what, text)
		}
		return nil
	})
}

// TestReload checks that a host whose manifest is newer waits for the new policy, that a bad policy
// changes nothing, and that a removed grant is refused.
func TestReload(t *testing.T) {
	var log buffer
	e := providertest.NewEnv(t, "ursula")
	e.Runs("oidc", struct{}{}, func(*providertest.Env) server.AnyKind { return server.Any(new(echo)) })
	e.Logger = slog.New(slog.NewTextHandler(&log, nil))
	e.Start()
	c := e.Client(ursula)
	r := hostapi.Request{Need: "echo", Serial: providertest.Serial + 1, Generation: 1, Body: json.RawMessage(`{"word":"hello"}`)}
	_, err := c.Do(t.Context(), hostapi.Path("oidc"), r)
	providertest.WantError(t, err, hostapi.CodePolicyBehind)

	e.Grant(ursula, "echo", "oidc", map[string]any{"word": "hello"})
	e.Publish(providertest.Serial + 1)
	log.has(t, "policy in force", 1)
	if _, err := c.Do(t.Context(), hostapi.Path("oidc"), r); err != nil {
		t.Fatal(err)
	}

	// The new policy is first refused by a kind, then incomplete, then missing. The old policy
	// stays in force.
	e.Policy.Kinds["oidc"] = json.RawMessage(`{"bad":1}`)
	e.Publish(providertest.Serial + 2)
	log.has(t, "bad settings", 1)
	if err := os.WriteFile(filepath.Join(e.PolicyDir(), "policy.envelope.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	log.has(t, "envelope: ", 1)
	if err := os.RemoveAll(e.PolicyDir()); err != nil {
		t.Fatal(err)
	}
	log.has(t, "no such file", 1)
	if _, err := c.Do(t.Context(), hostapi.Path("oidc"), r); err != nil {
		t.Fatal(err)
	}

	e.Policy.Kinds["oidc"] = json.RawMessage(`{}`)
	e.Policy.Grants = e.Policy.Grants[:1]
	e.Publish(providertest.Serial + 3)
	log.has(t, "policy in force", 2)
	_, err = c.Do(t.Context(), hostapi.Path("oidc"), r)
	providertest.WantError(t, err, hostapi.CodeNotGranted)
}

// TestNewRoot checks that a caller with a certificate below a root that was just deployed is not
// refused because of the old roots.
func TestNewRoot(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	e.Runs("oidc", struct{}{}, func(*providertest.Env) server.AnyKind { return server.Any(new(echo)) })
	e.Grant(ursula, "echo", "oidc", map[string]any{"word": "hello"})
	e.Start()
	next := kit.NewCA()
	e.Policy.Trust.Roots = append(e.Policy.Trust.Roots, next.RootPEM())
	c := e.Client(ursula)
	c.SVID = next.Issue(ursula, time.Hour)
	e.Publish(providertest.Serial + 1)
	if _, err := c.Do(t.Context(), hostapi.Path("oidc"), hostapi.Request{Need: "echo", Serial: providertest.Serial, Generation: 1, Body: json.RawMessage(`{"word":"hello"}`)}); err != nil {
		t.Error(err)
	}
}

func TestPolicyRefused(t *testing.T) {
	for want, change := range map[string]func(*document.Policy){
		`provider spiffe://demo.flor/service/outline, want service/<node>/florete-provider-cert of demo.flor`: func(p *document.Policy) {
			p.Provider["cert"] = document.Listening{ID: kit.ID("service/outline"), Listen: []string{}}
		},
		`florete-provider-oidc, want service/<node>/florete-provider-cert of demo.flor`: func(p *document.Policy) {
			p.Provider["cert"] = document.Listening{ID: kit.ID("service/drhorrible/florete-provider-oidc"), Listen: []string{}}
		},
		`policy of drhorrible: kind "cert" is not among those it runs: name drhorrible in providers.cert.hosts`: func(p *document.Policy) { delete(p.Provider, "cert") },
		`need "cert-node" of spiffe://demo.flor/node/ursula: granted twice`:                                     func(p *document.Policy) { p.Grants = append(p.Grants, p.Grants[0]) },
		`need "cert-node" of spiffe://demo.flor/node/ursula: kind "oidc" is not among`:                          func(p *document.Policy) { p.Grants[0].Kind = "oidc" },
		`host key of spiffe://demo.flor/node/ursula: ssh: no key found`:                                         func(p *document.Policy) { p.Devices[0].SSHHostKey = "ssh-ed25519 x" },
		`host key of spiffe://demo.flor/node/ursula: Ed25519 key of small order`: func(p *document.Policy) {
			p.Devices[0].SSHHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		},
		`trust domain demo.flor: no trust roots`:       func(p *document.Policy) { p.Trust.Roots = []string{} },
		`trust root 0: no PEM block CERTIFICATE in it`: func(p *document.Policy) { p.Trust.Roots = []string{"x"} },
	} {
		e := providertest.NewEnv(t, "ursula")
		change(&e.Policy)
		e.Publish(providertest.Serial)
		policies, err := server.OpenPolicies(e.PolicyDir(), e.Revocations(), "cert", nil)
		if err == nil {
			_, err = server.New(server.Config{Policies: policies, Kind: server.Any(issuer(t, e))})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}
}

// TestNewestWithoutServer checks that a process without a Server, such as flor-provider control,
// notices a newer policy.
func TestNewestWithoutServer(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	e.Publish(providertest.Serial)
	policies, err := server.OpenPolicies(e.PolicyDir(), e.Revocations(), "cert", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	e.Publish(providertest.Serial + 1)
	policies.Newest()
	if _, serial := policies.Versioned(); serial != providertest.Serial+1 {
		t.Errorf("serial %d is in force, want %d", serial, providertest.Serial+1)
	}
}

// TestPolicyGoesBack checks that a policy comes into force again whose file was read before.
func TestPolicyGoesBack(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	e.Publish(providertest.Serial)
	dir, first := filepath.Join(t.TempDir(), "policy"), e.PolicyDir()+".first"
	if err := errors.Join(os.CopyFS(first, os.DirFS(e.PolicyDir())), os.Symlink(first, dir)); err != nil {
		t.Fatal(err)
	}
	e.Publish(providertest.Serial + 1)
	policies, err := server.OpenPolicies(dir, e.Revocations(), "cert", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		for _, at := range []struct {
			dir    string
			serial int64
		}{{first, providertest.Serial}, {e.PolicyDir(), providertest.Serial + 1}, {first, providertest.Serial}} {
			if err := errors.Join(os.Remove(dir), os.Symlink(at.dir, dir)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			policies.Newest()
			if _, serial := policies.Versioned(); serial != at.serial {
				t.Errorf("serial %d is in force, want %d", serial, at.serial)
			}
		}
	})
}

// TestMoved checks that a policy for another provider or address requires a restart.
func TestMoved(t *testing.T) {
	var log buffer
	e := providertest.NewEnv(t, "ursula")
	e.Logger = slog.New(slog.NewTextHandler(&log, nil))
	e.Start()
	e.Policy.Provider["cert"] = document.Listening{ID: e.Provider().ID, Listen: []string{"127.0.0.1:4601"}}
	e.Publish(providertest.Serial + 1)
	log.has(t, "and was spiffe://demo.flor/service/drhorrible/florete-provider-cert at 127.0.0.1:4600: restart it", 1)
	if a := e.Policies.Self().Listen; !slices.Equal(a, []string{"127.0.0.1:4600"}) {
		t.Errorf("moved to %s", a)
	}
}
