package main

import (
	"context"
	"encoding/json"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
)

// TestReplicasRevoked checks that a revocation list that operators published binds every replica at
// once, although no activation brings it. A replica that was stopped meanwhile grants none of the
// requests that wait for it. Without a majority, nothing is granted.
func TestReplicasRevoked(t *testing.T) {
	c := newReplicas(t, 3, "cert")
	ursula := kit.ID("node/ursula")
	a, b := c.add("a"), c.add("b")
	c.deploy(a, b)
	for _, r := range c.all {
		r.run = start(t, r.settings)
	}
	key := kit.NewKey()
	c.enrol(a, key)
	lists := newLists(c)
	change := func(do func(*trust.Revocations, spiffe.ID) error) { t.Helper(); lists.change(do, ursula) }
	need := func() hostapi.Request { return request("cert-service-s1", kit.ID("service/s1"), kit.NewKey()) }
	ask := func(r *replica) error {
		_, err := c.client(r, "cert").Do(t.Context(), hostapi.Path("cert"), need())
		return err
	}
	refused := func(err error) bool { return err != nil && hostapi.AsError(err).Code == hostapi.CodeRevoked.Name }
	for range 6 {
		for _, r := range c.all {
			c.ask(r, "cert", need())
		}
		waiting := make([]*hostapi.Calls, 8)
		var written atomic.Int64
		for i := range waiting {
			client := c.client(b, "cert")
			client.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				return countedWrites{conn, &written}, err
			}
			waiting[i] = client.Calls()
			eventually(t, func() (hostapi.Answer, error) { return waiting[i].Do(t.Context(), hostapi.Path("cert"), need()) })
		}
		c.must(b.run.Process.Signal(syscall.SIGSTOP))
		change(revocation.Suspend)
		if err := ask(a); !refused(err) {
			t.Errorf("the replica that goes on: got %v, want %s", err, hostapi.CodeRevoked.Name)
		}
		var all sync.WaitGroup
		before := written.Load()
		for _, p := range waiting {
			all.Go(func() {
				defer p.Close()
				if _, err := p.Do(t.Context(), hostapi.Path("cert"), need()); !refused(err) {
					t.Errorf("the replica that was stopped: got %v, want %s", err, hostapi.CodeRevoked.Name)
				}
			})
		}
		kit.Eventually(t, "the requests to be sent", func() bool { return written.Load() >= before+int64(len(waiting)) })
		c.must(b.run.Process.Signal(syscall.SIGCONT))
		all.Wait()
		if err := ask(b); !refused(err) {
			t.Errorf("the replica that was stopped, a moment later: got %v, want %s", err, hostapi.CodeRevoked.Name)
		}
		change(revocation.Unsuspend)
	}

	t.Log("a list that the policy here has no key for")
	put := func(list trust.SignedRevocations) {
		t.Helper()
		lists.number++
		value, err := json.Marshal(archive.Revocations{Signed: list, Number: lists.number})
		c.must(err)
		_, err = lists.published.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(archive.RevocationsKey, value)}})
		c.must(err)
	}
	put(kit.Suspensions(lists.number+1, kit.SigningKey("demo-2"), ursula))
	for _, r := range c.all {
		if err := ask(r); err == nil || hostapi.AsError(err).Code != hostapi.CodeListBehind.Name {
			t.Errorf("got %v, want %s", err, hostapi.CodeListBehind.Name)
		}
	}
	put(kit.Revocations(lists.number+1, signing))

	t.Log("no majority")
	c.etcd.KillMajority()
	for _, r := range c.all {
		if err := ask(r); err == nil || hostapi.AsError(err).Code != hostapi.CodeStore.Name {
			t.Errorf("got %v, want %s", err, hostapi.CodeStore.Name)
		}
	}
}

// TestReplicasWatch checks that a watch ends if the majority of the store cannot be reached, so
// that the host watches another provider. Signed documents are still served.
func TestReplicasWatch(t *testing.T) {
	c := newReplicas(t, 3, "cert", "config")
	c.change = func(p *document.Policy) {
		p.Grants = append(p.Grants, document.Grant{Caller: kit.ID("node/ursula"), Need: "config-documents", Kind: "config", Request: kit.JSON(map[string]any{}), Generation: 1})
	}
	a := c.add("a")
	c.deploy(a)
	a.run = start(t, a.settings)
	startKind(t, "config", a.settings)
	c.enrol(a, kit.NewKey())
	c.must(published(a.dir, "1000", []string{"ursula"}))
	imported := exec.Command("flor-provider", "import", "--settings", a.settings)
	imported.Stdin = strings.NewReader(string(kit.ReadFile(filepath.Join(a.dir, "published.json"))))
	if out, err := imported.CombinedOutput(); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	p := c.client(a, "config").Calls()
	defer p.Close()
	var first hostapi.Artifact
	eventually(t, func() (_ hostapi.Answer, err error) {
		first, err = p.Artifact(t.Context())
		return hostapi.Answer{}, err
	})
	c.etcd.KillMajority()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	watching := c.client(a, "config")
	watching.Tag = first.Tag()
	w := watching.Calls()
	defer w.Close()
	if _, err := w.Watch(ctx, first.Revision); err == nil || hostapi.AsError(err).Code != hostapi.CodeStore.Name {
		t.Errorf("a watch without a majority: got %v, want %s", err, hostapi.CodeStore.Name)
	}
	again, err := p.Artifact(ctx)
	if err != nil || len(again.Documents) == 0 {
		t.Errorf("documents without a majority: got %d, %v", len(again.Documents), err)
	}
}

// countedWrites counts what is written to a connection.
type countedWrites struct {
	net.Conn
	n *atomic.Int64
}

func (c countedWrites) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.n.Add(1)
	return n, err
}
