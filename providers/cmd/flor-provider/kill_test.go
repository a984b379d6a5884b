package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
)

// TestKill kills a real provider with SIGKILL again and again while a host asks
// for nine things at once. In the end each was granted once, every answer to one
// request was the same, and nothing that was answered is missing.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(root(dir))
	address := kit.Address()
	hostKey := kit.NewHostKey()
	p, err := policyOf(dir, address, kit.Authorized(hostKey.PublicKey()), []string{"cert"})
	must(err)
	enforce(dir, p)
	settings := filepath.Join(dir, "provider.hujson")
	must(os.WriteFile(settings, []byte(`{"activation":"activation","state":"state","cert":{"issuingCertificate":"issuing.crt"}}`), 0o600))
	must(os.MkdirAll(filepath.Join(dir, "state", "cert"), 0o700))
	must(ca.Request(kit.Domain, filepath.Join(dir, "state", "cert", "issuing.key"), filepath.Join(dir, "state", "cert", "issuing.csr")))
	must(sign(dir))

	ursula := kit.ID("node/ursula")
	roots, err := trust.NewRoots(p.TrustDomain, p.Trust.Roots)
	must(err)
	ask := func() *hostapi.Client {
		return &hostapi.Client{Node: ursula, Provider: document.Provider{ID: p.Provider["cert"].ID, Addresses: p.Provider["cert"].Listen}, Roots: roots, HostKey: hostKey}
	}
	key, err := ca.NewKey()
	must(err)
	run := start(t, settings)
	svid := eventually(t, func() (hostapi.Answer, error) {
		return ask().Enrol(t.Context(), request("cert-node", ursula, key))
	})
	pair, err := ca.EncodeKey(key)
	must(err)
	certificate, err := tls.X509KeyPair([]byte(svid.Values["svid"]), pair)
	must(err)

	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	var wg sync.WaitGroup
	var answers, lost atomic.Int64
	again := ask()
	again.SVID = &certificate
	last := request("cert-node", ursula, key)
	for i := range 8 {
		id := kit.ID(fmt.Sprintf("service/s%d", i))
		need := fmt.Sprintf("cert-service-s%d", i)
		r := request(need, id, key)
		wg.Go(func() {
			c := ask()
			c.SVID = &certificate
			var first string
			for n := 1; n <= 6; {
				a, err := c.Do(ctx, hostapi.Path("cert"), r)
				switch {
				case ctx.Err() != nil:
					t.Error("the time is over")
					return
				case err != nil && hostapi.AsError(err).Kind != hostapi.Transient:
					t.Error(err)
					return
				case err != nil:
					lost.Add(1)
					time.Sleep(5 * time.Millisecond)
					continue
				case first == "":
					first = a.Values["svid"]
				case a.Values["svid"] != first:
					t.Errorf("need %s: another answer the second time", r.Need)
					return
				default: // heard twice
					n, first = n+1, ""
					r = request(need, id, key) // another CSR
				}
				answers.Add(1)
			}
		})
	}
	// 96 answers are heard in all; each kill waits for one to seven of them, so it
	// comes while others are being made.
	for heard, n := int64(0), 0; n < 12; n++ {
		heard += 1 + rand.Int64N(7)
		kit.Eventually(t, "answers", func() bool { return answers.Load() >= heard || ctx.Err() != nil })
		run.kill(t)
		run = start(t, settings)
	}
	wg.Wait()
	run.kill(t)
	if lost.Load() < 12 {
		t.Errorf("%d requests failed: the kills hit nothing", lost.Load())
	}

	// The rows of before each kill are in the log once it runs again.
	run = start(t, settings)
	kit.Succeeds(t, "the process to answer", func() error {
		_, err := again.Do(t.Context(), hostapi.Path("cert"), last)
		return err
	})
	verified(t, settings)
	proven(t, settings, audit(t, settings)[5])
	followed(t, settings, func() {
		if _, err := again.Do(t.Context(), hostapi.Path("cert"), last); err != nil {
			t.Error(err)
		}
	})
	run.kill(t)
	edited := audit(t, settings)[3]
	edit(t, filepath.Join(dir, "state", "cert", "state.db"), edited.Time)
	out, err := exec.Command("flor-provider", "audit", "--verify", "--settings", settings).Output()
	if want := edited.Time.Format(time.RFC3339Nano) + ": was edited in the store"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("after a row was edited: %v, %s, want %q", err, out, want)
	}

	granted := map[string]int{}
	for _, row := range audit(t, settings) {
		if row.Outcome == server.Changed {
			continue
		}
		if row.Outcome != server.Granted {
			t.Errorf("audit: %+v", row)
		}
		if !row.Replayed {
			granted[row.Key]++
		}
	}
	if len(granted) != 2+8*6 {
		t.Errorf("%d requests were granted, want %d", len(granted), 2+8*6)
	}
	for key, n := range granted {
		if n != 1 {
			t.Errorf("request %s was granted %d times", key, n)
		}
	}
}

// request asks for the SVID of id for a key.
func request(need string, id spiffe.ID, key crypto.Signer) hostapi.Request {
	return hostapi.Request{Need: need, Serial: 1000, Generation: 1, Body: kit.JSON(hostapi.CertBody{ID: id, CSR: kit.CSR(id, key)})}
}

// provider is a process.
type provider struct{ *exec.Cmd }

func start(t *testing.T, settings string) provider {
	t.Helper()
	return startKind(t, "cert", settings)
}

func startKind(t *testing.T, kind, settings string) provider {
	t.Helper()
	cmd := exec.Command("flor-provider", "run", kind, "--settings", settings)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return provider{cmd}
}

func (p provider) kill(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatalf("the provider ended by itself: %v", err)
	}
	p.Wait()
}

// audit reads the decisions as an operator would.
func audit(t *testing.T, settings string) (rows []server.Row) {
	t.Helper()
	var out []byte
	kit.Succeeds(t, "the audit log", func() (err error) { // its store may be busy
		var stderr bytes.Buffer
		cmd := exec.Command("flor-provider", "audit", "--settings", settings, "--json")
		cmd.Stderr = &stderr
		if out, err = cmd.Output(); err != nil {
			err = fmt.Errorf("%w: %s", err, &stderr)
		}
		return err
	})
	for line := range strings.Lines(string(out)) {
		var r server.Row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}
