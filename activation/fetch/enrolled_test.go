package fetch_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/tests/kit"
)

// TestFinishEnrolment checks that the device key is put in its place once and never replaced, that
// a failure is an error, and that there is no admission without it.
func TestFinishEnrolment(t *testing.T) {
	l := hostdir.Layout(filepath.Join(t.TempDir(), "state"))
	f := hostapi.IdentityFile{DeviceKey: "a key\n", Admission: &trust.SignedAdmission{Admission: "{}", Signature: "x"}}
	if err := os.MkdirAll(l.DeviceKey()+".new/x", 0o700); err != nil { // in the way of the file
		t.Fatal(err)
	}
	if err := fetch.FinishEnrolment(l, f); err == nil {
		t.Error("no error, without a device key")
	}
	if _, err := os.Stat(l.Admission()); err == nil {
		t.Error("an admission without a device key")
	}
	if err := os.RemoveAll(l.DeviceKey() + ".new"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := fetch.FinishEnrolment(l, f); err != nil {
			t.Fatal(err)
		}
		if got := string(kit.ReadFile(l.DeviceKey())); got != "a key\n" {
			t.Errorf("got %q", got)
		}
		f.DeviceKey = "another key\n"
	}
}
