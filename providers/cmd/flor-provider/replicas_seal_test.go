package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
)

// supervise runs the process of kind "cert" as its units do: unsealed before each start, and
// started again when it ends, until the test is over or stop is called.
func (r *replica) supervise(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			// What goes wrong is in the process's log, which the next start repeats.
			_ = exec.CommandContext(ctx, "flor-provider", "unseal", "cert", "--settings", r.settings).Run()
			_ = exec.CommandContext(ctx, "flor-provider", "run", "cert", "--settings", r.settings).Run()
			time.Sleep(100 * time.Millisecond)
		}
	})
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}

// opened are the keys that a replica's process has.
func (r *replica) opened(t *testing.T) (k sealedstore.RingKeys) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, "state", "cert", "seal.ring"))
	if err == nil {
		err = strictjson.Decode(b, &k)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// ringed waits until the ring is as it should be.
func ringed(t *testing.T, s store.Store, what string, is func(sealedstore.Ring) bool) (r sealedstore.Ring) {
	t.Helper()
	kit.Succeeds(t, what, func() (err error) {
		r, err = sealedstore.ReadRing(t.Context(), s)
		switch {
		case err != nil && !errors.Is(err, store.ErrNotFound):
			t.Fatal(err)
		case err == nil && !is(r):
			return fmt.Errorf("ring of %v", r.Replicas)
		}
		return err
	})
	return r
}

// TestKeyLifetime checks that the sealing key is replaced when its lifetime is over. A host that
// the flake dropped cannot open secrets that are sealed afterwards, even if no replica has the new
// policy yet. Any other replica gives the key to a new host.
func TestKeyLifetime(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	c := newReplicas(t, 3, "cert")
	var lifetime int64
	c.change = func(p *document.Policy) { p.Store.KeyLifetime = lifetime }
	dropped, b, late := c.add("a"), c.add("b"), c.add("c")
	c.deploy(dropped, b, late)
	db := c.etcd.Tree(t, kit.Domain+"/cert")
	var stops []func()
	for _, r := range c.all {
		stops = append(stops, r.supervise(t))
	}
	first := ringed(t, db, "made", func(r sealedstore.Ring) bool { return len(r.Replicas) == 3 })
	key := kit.NewKey()
	c.enrol(dropped, key)
	need := request("cert-service-s0", kit.ID("service/s0"), key)
	answer := c.ask(dropped, "cert", need).Values["svid"]

	former := dropped.opened(t)

	lifetime = 1
	c.deployOn([]*replica{b}, []*replica{b, late})
	second := ringed(t, db, "replaced by itself", func(r sealedstore.Ring) bool { return r.ID != first.ID })
	lifetime = 0
	c.deployOn([]*replica{b}, []*replica{b, late})
	pem, err := os.ReadFile(filepath.Join(dropped.dir, "ssh_host_ed25519_key"))
	c.must(err)
	if _, err := second.Open(pem); err == nil || second.Replicas[dropped.device.ID] != "" {
		t.Error("the host that was dropped opens the new ring")
	}

	// It is sealed with the new key, whose holders still return what the former one sealed. A
	// process that runs has the former key until it looks.
	kit.Eventually(t, "the replica to open the new ring", func() bool { return late.opened(t).ID != first.ID })
	if got := c.ask(late, "cert", need).Values["svid"]; got != answer {
		t.Error("another answer to the same request after the key was replaced")
	}
	c.ask(late, "cert", request("cert-service-s1", kit.ID("service/s1"), key))
	e, err := db.Get(t.Context(), "answers/node/ursula/cert-service-s1")
	c.must(err)
	var record struct {
		Answer []byte `json:"answer"`
	}
	c.must(json.Unmarshal(e.Value, &record))
	k, err := former.Key()
	c.must(err)
	if _, err := k.Open(e.Key, record.Answer); err == nil {
		t.Error("the key of before the drop opens what was sealed after")
	}

	// The one that still has the former policy, which names it, does not let it in.
	stops[0]()
	out, err := exec.Command("flor-provider", "unseal", "cert", "--settings", dropped.settings).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "not among those that can open it") {
		t.Errorf("unseal where it was dropped: %s, %v", out, err)
	}
	// Any other lets a new one in: b is away.
	stops[1]()
	added := c.add("d")
	c.deploy(b, late, added)
	added.supervise(t)
	after := ringed(t, db, "the new one let in", func(r sealedstore.Ring) bool { return r.Replicas[added.device.ID] != "" })
	if after.Replicas[dropped.device.ID] != "" { // which asked earlier
		t.Errorf("the one that was dropped is let in again: %v", after.Replicas)
	}
	c.ask(added, "cert", request("cert-service-s2", kit.ID("service/s2"), key))
}
