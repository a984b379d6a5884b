package sealedstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
)

// host is a replica with its SSH host key.
type host struct {
	document.Device
	pem []byte
}

func newHost(t *testing.T, name string) host {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ssh_host_ed25519_key")
	public := kit.WriteHostKey(path)
	pem, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return host{document.Device{ID: kit.ID("node/" + name), SSHHostKey: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))}, pem}
}

func open(t *testing.T, s store.Store, h host) (sealedstore.Ring, sealedstore.RingKeys, error) {
	t.Helper()
	r, err := sealedstore.ReadRing(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	k, err := r.Open(h.pem)
	return r, k, err
}

func key(t *testing.T, k sealedstore.RingKeys) *sealedstore.Key {
	t.Helper()
	key, err := k.Key()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// named are the replicas of a policy.
func named(serial int64, hosts ...host) sealedstore.RingReplicas {
	n := sealedstore.RingReplicas{Serial: serial}
	for _, h := range hosts {
		n.Replicas = append(n.Replicas, h.Device)
	}
	return n
}

// TestReplicas checks that one replica makes the ring and all replicas of the flake open it. A new
// replica opens it after another lets it in. A removed replica opens nothing that is sealed after
// the next rotation.
func TestReplicas(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, b, c := newHost(t, "a"), newHost(t, "b"), newHost(t, "c")
	if _, err := sealedstore.ReadRing(t.Context(), s); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("of an empty store: %v", err)
	}
	first, err := sealedstore.MakeRing(t.Context(), s, named(1, a, b), sealedstore.Secret())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sealedstore.MakeRing(t.Context(), s, named(1, b), sealedstore.Secret()); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("made twice: %v, want ErrConflict", err)
	}
	r, ofB, err := open(t, s, b)
	if err != nil {
		t.Fatal(err)
	}
	sealed := key(t, first).Seal("place", []byte("secret"))
	if v, err := key(t, ofB).Open("place", sealed); err != nil || string(v) != "secret" {
		t.Fatalf("b opens %q, %v", v, err)
	}
	if !r.Lacks(named(1, a, c)) || r.Lacks(named(1, b)) {
		t.Error("Lacks: want that c is, and b is not")
	}

	if _, _, err := open(t, s, c); err == nil {
		t.Fatal("c opens a ring that nobody let it in")
	}
	if err := r.Admit(t.Context(), s, ofB, named(1, b, c)); err != nil {
		t.Fatal(err)
	}
	if err := r.Admit(t.Context(), s, ofB, named(1, c)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("admitted by what was read before: %v, want ErrConflict", err)
	}
	for _, h := range []host{a, b, c} {
		if _, k, err := open(t, s, h); err != nil || k.ID != first.ID {
			t.Errorf("%s: %v", h.ID, err)
		}
	}

	r, ofC, err := open(t, s, c)
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := r.Rotate(t.Context(), s, ofC, named(1, b, c))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := open(t, s, a); err == nil {
		t.Error("a, which was dropped, opens the ring")
	}
	_, ofB, err = open(t, s, b)
	if err != nil || ofB.ID != rotated.ID {
		t.Fatalf("b after the rotation: %v", err)
	}
	now := key(t, ofB)
	if v, err := now.Open("place", sealed); err != nil || string(v) != "secret" {
		t.Errorf("what was sealed before: %q, %v", v, err)
	}
	if string(now.Derive("purpose", 32)) != string(key(t, first).Derive("purpose", 32)) {
		t.Error("what is derived changed with the rotation")
	}
	anew, changed, err := now.Reseal("place", sealed)
	if err != nil || !changed {
		t.Fatalf("sealed anew: %t, %v", changed, err)
	}
	if _, again, err := now.Reseal("place", anew); again || err != nil {
		t.Errorf("sealed anew again: %t, %v", again, err)
	}
	if _, err := key(t, first).Open("place", anew); err == nil {
		t.Error("the key of before opens what was sealed after the rotation")
	}
	r, _, _ = open(t, s, b)
	if _, err := r.Rotate(t.Context(), s, ofB, named(1, b)); err == nil || !strings.Contains(err.Error(), "want 15s between two rotations") {
		t.Errorf("rotated twice within a moment: %v", err)
	}
	r.Made = r.Made.Add(-time.Minute)
	last, err := r.Rotate(t.Context(), s, ofB, named(1, b))
	if err != nil || len(last.Secrets) != 3 {
		t.Fatalf("%d secrets, %v, want the new one, the one before and the first", len(last.Secrets), err)
	}
}

// TestFormerPolicy checks that a replica with a former policy does not let a replica in that a
// newer policy dropped, and rotates nothing.
func TestFormerPolicy(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, b, c := newHost(t, "a"), newHost(t, "b"), newHost(t, "c")
	former, newer := named(1, a, b, c), named(2, b, c)
	first, err := sealedstore.MakeRing(t.Context(), s, former, sealedstore.Secret())
	if err != nil {
		t.Fatal(err)
	}
	r, err := sealedstore.ReadRing(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Rotate(t.Context(), s, first, newer); err != nil {
		t.Fatal(err)
	}
	r, keys, err := open(t, s, c)
	if err != nil || !r.Lacks(former) {
		t.Fatalf("c lacks nothing, or %v", err)
	}
	behind := "a replica keeps it by its policy of serial 2, the policy here has 1: deploy this provider"
	if err := r.Admit(t.Context(), s, keys, former); err == nil || !strings.Contains(err.Error(), behind) {
		t.Errorf("by the former policy c lets a in: %v", err)
	}
	r.Made = r.Made.Add(-time.Minute)
	if _, err := r.Rotate(t.Context(), s, keys, former); err == nil || !strings.Contains(err.Error(), behind) {
		t.Errorf("by the former policy c rotates: %v", err)
	}
	if _, _, err := open(t, s, a); err == nil {
		t.Error("a opens the ring")
	}
	if err := r.Admit(t.Context(), s, keys, named(3, a, b, c)); err != nil {
		t.Errorf("by a newer one: %v", err)
	}
	if _, _, err := open(t, s, a); err != nil {
		t.Errorf("a is let in again by a newer policy: %v", err)
	}
}

// TestRefusals checks that an error names a host key that age cannot encrypt to.
func TestRefusals(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := document.Device{ID: kit.ID("node/a"), SSHHostKey: "ecdsa-sha2-nistp256 AAAA"}
	if _, err := sealedstore.MakeRing(t.Context(), s, sealedstore.RingReplicas{Replicas: []document.Device{d}}, sealedstore.Secret()); err == nil || !strings.Contains(err.Error(), "node/a") {
		t.Errorf("got %v, want an error that names the host", err)
	}
	if _, err := sealedstore.ReadRing(t.Context(), s); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("left %v", err)
	}
}
