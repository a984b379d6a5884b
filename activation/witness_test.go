package activation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/activation/witness"
)

// TestWitness: a host keeps what it has seen of its provider's audit logs, over restarts, and
// reports one that is not what it was until a person has seen to it.
func TestWitness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		faults := func(want string) {
			t.Helper()
			synctest.Wait()
			found := h.config.State.AuditFaults()
			if want == "" && len(found) == 0 {
				return
			}
			for _, f := range found {
				if want == "" || f.Provider != "forge" || !strings.Contains(f.Fault, want) {
					t.Errorf("%+v, want %q", f, want)
				}
			}
			if len(found) != 3 { // of kinds
				t.Errorf("%d logs are at fault, want %q", len(found), want)
			}
		}
		h.forge.SetLog("", "a", "b")
		stop := h.run()
		time.Sleep(35 * time.Minute)
		faults("")
		all, err := h.config.State.Witnessed()
		if err != nil || len(all) != 3 || all[0].Size != 2 || all[0].Provider != "forge" {
			t.Fatalf("%+v, %v", all, err)
		}
		h.forge.SetLog("", "a", "b", "c")
		time.Sleep(4 * time.Hour)
		faults("")
		h.forge.SetLog("3 rows are gone", "a", "b", "c")
		time.Sleep(4 * time.Hour)
		faults("3 rows are gone")
		h.forge.SetLog("", "a", "b", "c", "d")
		time.Sleep(4 * time.Hour)
		faults("")
		stop()

		h.forge.SetLog("", "a", "x", "c", "d", "e")
		stop = h.run()
		time.Sleep(time.Hour)
		faults("are others than before")
		h.forge.SetLog("", "a", "b", "c", "d", "e")
		time.Sleep(4 * time.Hour)
		faults("are others than before") // it signed two
		all, err = h.config.State.Witnessed()
		if err != nil || all[0].Size != 5 || !strings.HasPrefix(all[0].Refused, "demo.flor/cert/forge\n5\n") || all[0].Since.IsZero() {
			t.Errorf("%+v, %v", all, err)
		}
		h.forge.SetLog("", "a")
		time.Sleep(4 * time.Hour)
		faults("has 1 rows, it had 5 before")
		stop()
		if n := strings.Count(h.lines(), "audit: forge: audit log of kind "+florete.KindCert); n != 3 {
			t.Errorf("the alarm was raised %d times\n%s", n, h.lines())
		}
	})
}

// TestWitnessAccepted: once a person accepted the log that a provider has, the host goes on from
// that one, and raises the alarm again for another. It witnesses at once when it is to.
func TestWitnessAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.config.Refetch = t.TempDir()
		l := h.config.State
		now := func(want int, fault string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(h.config.Refetch, florete.WitnessFile), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			at := time.Now()
			if err := os.Chtimes(filepath.Join(h.config.Refetch, florete.WitnessFile), at, at); err != nil {
				t.Fatal(err)
			}
			time.Sleep(15 * time.Second)
			synctest.Wait()
			found := l.AuditFaults()
			if len(found) != want || want > 0 && !strings.Contains(found[0].Fault, fault) {
				t.Errorf("%+v, want %d of %q", found, want, fault)
			}
		}
		accept := func(kind, reason string) error {
			return witness.Accept(l, "forge", kind, florete.AcceptedAudit{At: florete.TimeOf(time.Now()), By: "root", Reason: reason})
		}
		h.forge.SetLog("", "a", "b")
		defer h.run()()
		time.Sleep(5 * time.Minute)
		now(0, "")
		h.forge.SetLog("", "x", "b", "c")
		now(3, "are others than before")
		if err := accept("cert", " "); err == nil {
			t.Error("accepted without a reason")
		}
		if err := accept("tls", "restored"); err == nil || !strings.Contains(err.Error(), "has not witnessed one") {
			t.Errorf("accepted of an unknown log: %v", err)
		}
		for i, kind := range []string{"cert", "oidc", "config"} {
			if err := accept(kind, "restored"); err != nil {
				t.Fatal(err)
			}
			if found := l.AuditFaults(); len(found) != 2-i {
				t.Errorf("accepted %s, and there are %+v", kind, found)
			}
		}
		if err := accept("cert", "restored"); err == nil || !strings.Contains(err.Error(), "nothing is wrong") {
			t.Errorf("accepted twice: %v", err)
		}
		h.forge.SetLog("", "x", "b", "c", "d")
		now(0, "")
		if all, err := l.Witnessed(); err != nil || all[0].Size != 4 || all[0].Refused != "" {
			t.Errorf("%+v, %v", all, err)
		}
		h.forge.SetLog("", "x", "b", "y", "d", "e")
		now(3, "are others than before")

		for _, kind := range []string{"cert", "oidc", "config"} {
			if err := accept(kind, "restored again"); err != nil {
				t.Fatal(err)
			}
		}
		h.forge.SetLog("1 row is gone", "x", "b", "y", "d", "e")
		now(3, "1 row is gone")
		for _, kind := range []string{"cert", "oidc", "config"} {
			if err := accept(kind, "removed by hand"); err != nil {
				t.Fatal(err)
			}
		}
		now(0, "")
		h.forge.SetLog("2 rows are gone", "x", "b", "y", "d", "e")
		now(3, "2 rows are gone")
	})
}
