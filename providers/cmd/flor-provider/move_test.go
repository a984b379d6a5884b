package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
)

// alone has the policy in force by which a host has its state in files.
func (c *replicas) alone(r *replica) {
	c.t.Helper()
	p, err := policyOf(r.dir, r.addresses["cert"], kit.Authorized(c.hostKey.PublicKey()), []string{"cert"})
	c.must(err)
	p.Host = r.name
	p.Provider["cert"] = document.Listening{ID: kit.ProviderID(r.name, "cert"), Listen: []string{r.addresses["cert"]}}
	enforce(r.dir, p)
}

// waits checks that a process serves nothing, for a reason.
func waits(t *testing.T, r *replica, reason string) {
	t.Helper()
	cmd := exec.Command("flor-provider", "run", "cert", "--settings", r.settings)
	log := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Stderr = f
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	kit.Succeeds(t, r.name+" to wait", func() error {
		b, err := os.ReadFile(log)
		if err != nil || strings.Contains(string(b), "serving") {
			t.Fatalf("%s does not wait: %s, %v, want %s", r.name, b, err, reason)
		}
		if !strings.Contains(string(b), reason) {
			return fmt.Errorf("%s, want %s", b, reason)
		}
		return nil
	})
}

// TestMoves checks that the state in a host's files moves into the store with its sealing key while
// it is served, even if processes are killed. Replicas serve the state when it is complete, and the
// files are never served again.
func TestMoves(t *testing.T) {
	c := newReplicas(t, 1, "cert")
	a, b := c.add("a"), c.add("b")
	for _, r := range c.all {
		c.alone(r)
		r.run = start(t, r.settings)
	}
	key := kit.NewKey()
	svid := eventually(t, func() (hostapi.Answer, error) {
		return c.client(a, "cert").Enrol(t.Context(), request("cert-node", kit.ID("node/ursula"), key))
	})
	pair, err := ca.EncodeKey(key)
	c.must(err)
	certificate, err := tls.X509KeyPair([]byte(svid.Values["svid"]), pair)
	c.must(err)
	ask := func(r *replica, need hostapi.Request) string {
		t.Helper()
		return eventually(t, func() (hostapi.Answer, error) {
			client := c.client(r, "cert")
			client.SVID = &certificate
			return client.Do(t.Context(), hostapi.Path("cert"), need)
		}).Values["svid"]
	}
	var needs []hostapi.Request
	var first []string
	for i := range 8 {
		needs = append(needs, request(fmt.Sprintf("cert-service-s%d", i), kit.ID(fmt.Sprintf("service/s%d", i)), key))
		first = append(first, ask(a, needs[i]))
	}
	out, err := exec.Command("flor-provider", "state", "backup", filepath.Join(a.dir, "backup"), "--settings", a.settings).CombinedOutput()
	if err != nil {
		t.Fatalf("%s, %v", out, err)
	}

	// The store is in the flake, and not which host's state is to move: nobody serves anew.
	b.run.kill(t)
	c.from = ""
	c.deploy(b)
	waits(t, b, `has state that is not in the store which the policy names: add this host to providers.store.from = [ \"b\" ]`)
	c.from = "a"
	c.deploy(b)
	waits(t, b, "to leave it behind, run: mkdir -m 700 ")
	c.must(os.MkdirAll(filepath.Join(b.dir, "state", "cert", "aside"), 0o700))
	files, err := filepath.Glob(filepath.Join(b.dir, "state", "cert", "state.db*"))
	c.must(err)
	for _, f := range files {
		c.must(os.Rename(f, filepath.Join(b.dir, "state", "cert", "aside", filepath.Base(f))))
	}
	waits(t, b, `the state of kind \"cert\" is on a, and has not moved into the store yet`)

	// It moves while it is served, and is killed again and again.
	b.run = start(t, b.settings)
	c.from = "a"
	c.deploy(a, b)
	waited := make(chan string, 1)
	go func() {
		out, err := exec.Command("flor-provider", "state", "migrate", "--settings", a.settings).CombinedOutput()
		waited <- fmt.Sprintf("%s%v", out, err)
	}()
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		// It has begun when there is a keyring, and goes on when the process looks again.
		ring := filepath.Join(a.dir, "state", "cert", "seal.ring")
		if err := kit.Poll(t.Context(), func() error { _, err := os.Stat(ring); return err }); err != nil {
			t.Error(err)
		}
		for n := range 3 {
			_ = a.run.Process.Kill()
			_ = a.run.Wait()
			a.run = start(t, a.settings)
			if n < 2 {
				time.Sleep(look + time.Duration(50+60*n)*time.Millisecond)
			}
		}
	}()
	for i, need := range needs {
		if ask(a, need) != first[i] || ask(b, need) != first[i] {
			t.Errorf("need %s: another answer after the move", need.Need)
		}
	}
	<-killed
	if out := <-waited; !strings.HasPrefix(out, "cert: in the store, from a since ") {
		t.Error(out)
	}
	more := request("cert-service-s0", kit.ID("service/s0"), kit.NewKey())
	if ask(b, more) != ask(a, more) {
		t.Error("a serves another state than b")
	}
	granted := map[string]int{}
	moved := 0
	for _, row := range audit(t, b.settings) {
		if row.Outcome == server.Granted && !row.Replayed {
			granted[row.Key]++
		}
		if row.Code == "moved" {
			moved++
		}
	}
	if len(granted) != 2+len(needs) || moved != 1 {
		t.Errorf("%d requests were granted, want %d; %d moves", len(granted), 2+len(needs), moved)
	}

	// Going back to the file would bring an older state back.
	a.run.kill(t)
	c.alone(a)
	waits(t, a, "its state moved to the store at")
	out, err = exec.Command("flor-provider", "audit", "--settings", a.settings).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "its state moved to the store at") {
		t.Errorf("%s, %v", out, err)
	}

	// Once moved, the flake need not name it; a backup of the file fits the store.
	c.from = ""
	c.deploy(a, b)
	a.run = start(t, a.settings)
	if ask(a, more) != ask(b, more) {
		t.Error("without from a serves another state than b")
	}
	out, err = exec.Command("flor-provider", "state", "restore", filepath.Join(a.dir, "backup"), "--settings", a.settings).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "cert: 0 entries put back") {
		t.Errorf("%s, %v", out, err)
	}
	for _, r := range c.all {
		r.run.kill(t)
	}
}
