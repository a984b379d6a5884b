package ca_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
)

// TestKept checks that an issuing CA is read once, and again one second after one of its files was
// replaced. If the new files cannot be used, the CA that was read before is not used either.
func TestKept(t *testing.T) { synctest.Test(t, kept) }

func kept(t *testing.T) {
	dir := t.TempDir()
	k := &ca.Kept{Certificate: filepath.Join(dir, "issuing.crt"), Key: filepath.Join(dir, "issuing.key")}
	c := kit.NewCA()
	save := func() {
		t.Helper()
		if err := ca.SaveKey(k.Key, c.Issuing.Key); err != nil {
			t.Fatal(err)
		}
		if err := ca.Save(k.Certificate, ca.EncodeCertificates(c.Issuing.Certificate)); err != nil {
			t.Fatal(err)
		}
	}
	save()
	first, err := k.Load()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := k.Load(); err != nil || again != first {
		t.Errorf("unchanged: %p, %v, want %p", again, err, first)
	}
	c.Renew(time.Hour)
	save()
	time.Sleep(time.Second)
	if next, err := k.Load(); err != nil || !next.Certificate.Equal(c.Issuing.Certificate) {
		t.Errorf("replaced: %v, want the new one", err)
	}
	if err := os.Chmod(k.Key, 0o644); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if _, err := k.Load(); err == nil {
		t.Error("a key that everybody can read is used")
	}
	if err := os.Remove(k.Certificate); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if _, err := k.Load(); err == nil {
		t.Error("a certificate that is gone is used")
	}
}
