package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit"
)

// TestReplicas checks that hosts that share a store grant a request once, whichever host gets it,
// and share a sealing key that nobody has to copy.
func TestReplicas(t *testing.T) {
	c := newReplicas(t, 3, "cert")
	a, b := c.add("a"), c.add("b")
	c.deploy(a, b)
	for _, r := range c.all {
		r.run = start(t, r.settings)
	}
	key := kit.NewKey()
	c.enrol(a, key)

	// The same request of both at once, and a member dies.
	var needs []hostapi.Request
	for i := range 8 {
		needs = append(needs, request(fmt.Sprintf("cert-service-s%d", i), kit.ID(fmt.Sprintf("service/s%d", i)), key))
	}
	first := make([]string, len(needs))
	for i, need := range needs {
		var killed sync.WaitGroup
		if i == 4 {
			killed.Go(c.etcd.Leader().Kill)
		}
		answers := c.both(a, b, "cert", need)
		killed.Wait()
		first[i] = answers[0].Values["svid"]
		if first[i] != answers[1].Values["svid"] {
			t.Errorf("need %s: two answers to one request", need.Need)
		}
	}

	// A new replica is let in by the others, and has what they answered.
	d := c.add("d")
	c.deploy(a, b, d)
	d.run = start(t, d.settings)
	if c.ask(d, "cert", needs[0]).Values["svid"] != first[0] {
		t.Error("the new replica answers otherwise")
	}

	// One that is dropped is out at the next rotation, which another orders.
	a.run.kill(t)
	c.deploy(b, d)
	out, err := exec.Command("flor-provider", "rotate-seal", "cert", "--settings", b.settings).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "for 2 replicas") {
		t.Fatalf("%s, %v", out, err)
	}
	for _, r := range []*replica{b, d} {
		ended := make(chan error, 1)
		go func() { ended <- r.run.Wait() }()
		kit.Reads(t, r.name+" to end, which has the former key", ended)
		r.run = start(t, r.settings)
		if c.ask(r, "cert", needs[1]).Values["svid"] != first[1] {
			t.Errorf("%s answers otherwise after the rotation", r.name)
		}
	}
	c.must(os.Remove(filepath.Join(a.dir, "state", "cert", "seal.ring")))
	out, err = exec.Command("flor-provider", "unseal", "cert", "--settings", a.settings).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "not opened yet") {
		t.Errorf("a host that was dropped: %s, %v", out, err)
	}

	if granted := c.decided(b, "cert"); len(granted) != 1+len(needs) {
		t.Errorf("%d requests were granted, want %d", len(granted), 1+len(needs))
	}
	for _, r := range []*replica{b, d} {
		r.run.kill(t)
	}
}
