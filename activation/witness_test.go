package activation

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/activation/witness"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// TestWitness checks that a host keeps its observations of its provider's audit logs over restarts,
// and reports a log that was changed until a person has examined it.
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
		if n := strings.Count(h.lines(), "audit: forge: audit log of kind "+document.KindCert); n != 3 {
			t.Errorf("the alarm was raised %d times\n%s", n, h.lines())
		}
	})
}

// TestWithheld checks that a provider that showed its audit log once must continue to do so for as
// long as it answers, whatever it returns instead, and that a provider that is down is not blamed.
func TestWithheld(t *testing.T) {
	const withheld = "it has returned no checkpoint of its audit log since "
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.manifest.Needs = append(h.manifest.Needs, kit.OIDCNeed("oidc-spare", Service, "spare"))
		h.deploy()
		l := h.config.State
		// Each log is withheld in another way. That of the documents does not count: they are fetched
		// again and again, which alone shows that the provider answers.
		both := func(set func(*Provider)) { set(h.forge); set(h.spare) }
		hide := func() {
			h.forge.HideLog(func(kind string) *hostapi.Error {
				if kind == document.KindOIDC {
					panic(http.ErrAbortHandler) // no answer at all
				}
				return hostapi.Errorf(hostapi.CodeUnknownMethod, "no such endpoint")
			})
			h.spare.HideLog(func(string) *hostapi.Error {
				return hostapi.Errorf(hostapi.CodeUnavailable, "no checkpoint yet")
			})
		}
		show := func() { both(func(p *Provider) { p.HideLog(nil) }) }
		faults := func(want int) {
			t.Helper()
			synctest.Wait()
			found := l.AuditFaults()
			other := func(f hostdir.ReportedAudit) bool { return !strings.HasPrefix(f.Fault, withheld) }
			if len(found) != want || slices.ContainsFunc(found, other) {
				t.Errorf("%+v, want %d of logs that are withheld", found, want)
			}
		}
		both(func(p *Provider) { p.SetLog("", "a", "b") })
		stop := h.run()
		time.Sleep(time.Hour)
		both(func(p *Provider) { p.SetDown(true) }) // for long, but it withholds nothing
		time.Sleep(20 * time.Hour)
		faults(0)
		both(func(p *Provider) { p.SetDown(false) })
		time.Sleep(4 * time.Hour)
		hide()
		time.Sleep(5 * time.Hour)
		faults(0)
		stop()
		stop = h.run() // it is counted from the first refusal
		time.Sleep(4 * time.Hour)
		faults(4)
		for _, of := range l.AuditFaults() {
			if err := witness.Accept(l, of.Provider, of.Kind, hostdir.AcceptedAudit{At: unixtime.Of(time.Now()), By: "root", Reason: "an older release"}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(30 * time.Hour)
		faults(0)
		stop()
		stop = h.run()
		time.Sleep(3 * time.Hour)
		faults(0)
		show()
		time.Sleep(4 * time.Hour)
		faults(0)
		hide()
		time.Sleep(10 * time.Hour)
		faults(4) // again
		show()
		time.Sleep(4 * time.Hour)
		faults(0)
		hide()
		time.Sleep(10 * time.Hour)
		show()
		both(func(p *Provider) { p.SetLog("", "a", "x") })
		time.Sleep(4 * time.Hour)
		stop()
		same := func(f hostdir.ReportedAudit) bool { return !strings.Contains(f.Fault, "are others than before") }
		if found := l.AuditFaults(); len(found) != 4 || slices.ContainsFunc(found, same) {
			t.Errorf("%+v, want that each log is another", found)
		}
	})
}

// TestWithheldSilently checks that a provider that fulfils needs but is down whenever a host reads
// its audit log is found to withhold it.
func TestWithheldSilently(t *testing.T) {
	hour := func(n int) unixtime.Time { return unixtime.Unix(int64(1_800_000_000 + 3600*n)) }
	w := hostdir.Witnessed{Provider: "forge", Kind: "cert", Key: "key", Seen: hour(0)}
	for _, step := range []struct {
		at, fulfilled int
		fault         bool
	}{{1, -1, false}, {20, 0, false}, {21, 20, false}, {40, 20, false}, {41, 40, true}} {
		w = witness.Withhold(w, false, hour(step.fulfilled), hour(step.at), nil)
		if (w.Fault != "") != step.fault {
			t.Errorf("%+v: fault %q", step, w.Fault)
		}
	}
}

// TestWitnessAccepted checks that once a person accepted a provider's log, the host continues from
// that one, and raises the alarm again for another. Witnessing can be requested at once.
func TestWitnessAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.config.Refetch = t.TempDir()
		l := h.config.State
		now := func(want int, fault string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(h.config.Refetch, hostdir.WitnessFile), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			at := time.Now()
			if err := os.Chtimes(filepath.Join(h.config.Refetch, hostdir.WitnessFile), at, at); err != nil {
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
			return witness.Accept(l, "forge", kind, hostdir.AcceptedAudit{At: unixtime.Of(time.Now()), By: "root", Reason: reason})
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
