package activation

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete"
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
