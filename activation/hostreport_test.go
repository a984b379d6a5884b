package activation

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/recording"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// reporting returns a host that reports the state of its needs, with its release in place of facts.
func reporting(t *testing.T) *host {
	h := newHost(t)
	var m document.Document
	h.config.HostReport = func(context.Context) hostreport.Report {
		r := hostreport.Report{Release: "1", Format: document.NewestFormat}
		var err error
		if m, err = h.config.State.Refresh(m); err != nil {
			t.Error(err)
		}
		for _, n := range m.Manifest().Needs {
			s, err := h.config.State.NeedState(n.ID)
			if err != nil {
				t.Error(err)
			}
			r.Needs = append(r.Needs, hostreport.Need{ID: n.ID, State: s.State, Expires: s.Expires, Error: s.Error})
		}
		return r
	}
	return h
}

// TestReports checks that a host reports once it is enrolled and its needs are settled, then about
// every five minutes.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := reporting(t)
		stop := h.run()
		time.Sleep(time.Minute)
		first := h.forge.Reports()
		if len(first) == 0 || len(first) > 2 || first[0].Release != "1" {
			t.Errorf("%+v", first)
		}
		time.Sleep(3 * time.Hour)
		h.wantExit(stop(), event.ExitFulfilled)
		all := h.forge.Reports()[len(first):]
		if n := len(all); n < 32 || n > 41 {
			t.Errorf("%d reports in three hours", n)
		}
		var pauses []time.Duration
		for i := range all[1:] {
			if all[i+1].Sequence <= all[i].Sequence {
				t.Errorf("sequence %d after %d", all[i+1].Sequence, all[i].Sequence)
			}
			pauses = append(pauses, all[i+1].At.Sub(all[i].At))
		}
		if least, most := slices.Min(pauses), slices.Max(pauses); least < 4*time.Minute+29*time.Second || most > 5*time.Minute+31*time.Second || least == most {
			t.Errorf("from %s to %s between two", least, most)
		}
	})
}

// TestReportsChanges checks that changes are reported within seconds, and that attempts alone do
// not count as changes.
func TestReportsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := reporting(t)
		stop := h.run()
		time.Sleep(time.Hour)
		before := len(h.forge.Reports())
		h.forge.SetRefuse(func(c Call) *hostapi.Error {
			if c.Need == "oidc-late" {
				return hostapi.Errorf(hostapi.CodePolicyBehind, "later")
			}
			return nil
		})
		m := h.Manifest()
		m.Needs = append(m.Needs, kit.OIDCNeed("oidc-late", Service, "forge"))
		h.publish(2, m)
		time.Sleep(16 * time.Minute) // until the documents are fetched, and then some
		h.forge.SetRefuse(nil)
		time.Sleep(6 * time.Minute) // until it is fulfilled
		h.wantExit(stop(), event.ExitFulfilled)
		calls, reports := h.forge.Calls("oidc-late"), h.forge.Reports()[before:]
		if len(calls) < 5 {
			t.Fatalf("%d requests, want several that are refused", len(calls))
		}
		for state, at := range map[hostdir.NeedStatus]time.Time{hostdir.NeedWaiting: calls[0].At, hostdir.NeedFulfilled: calls[len(calls)-1].At} {
			i := slices.IndexFunc(reports, func(r Received) bool {
				return slices.ContainsFunc(r.Needs, func(n hostreport.Need) bool { return n.ID == "oidc-late" && n.State == state })
			})
			if i < 0 || reports[i].At.Sub(at) > 11*time.Second {
				t.Errorf("%s since %s is not reported by then", state, at)
			}
		}
		if n := len(reports); n > 5+4 {
			t.Errorf("%d reports, want those every five minutes and one of each change", n)
		}
	})
}

// TestReportsElsewhere checks that a report goes to another provider if one is down, and not to one
// that already has it.
func TestReportsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := reporting(t)
		for i := range h.manifest.Needs {
			h.manifest.Needs[i].Providers = []string{"forge", "spare"}
		}
		h.deploy()
		stop := h.run()
		time.Sleep(time.Minute)
		h.forge.Ahead(1_000_000)
		time.Sleep(12 * time.Minute) // two reports: one is answered with that, the next exceeds it
		h.forge.Stop()
		time.Sleep(20 * time.Minute)
		stop()
		forge, spare := h.forge.Reports(), h.spare.Reports()
		if len(spare) < 3 || spare[0].Sequence <= forge[len(forge)-1].Sequence {
			t.Errorf("%d reports at the other", len(spare))
		}
		if last := forge[len(forge)-1]; last.Sequence < forge[0].Sequence+1_000_000 {
			t.Errorf("sequence %d although the provider has one higher by a million", last.Sequence)
		}
	})
}

// TestReportsRecordings checks that a host reports recorded sessions until a provider has them, and
// not again, also after a restart.
func TestReportsRecordings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := reporting(t)
		state := h.config.State
		h.config.HostReport = func(context.Context) hostreport.Report {
			finished, err := recording.ReadFinished(state.FinishedRecordings())
			if err != nil {
				t.Error(err)
			}
			return hostreport.Report{Format: document.NewestFormat, Recordings: finished.After(state.ConfirmedRecordings())}
		}
		finish := func(n int) {
			f := recording.Finished{Last: int64(n)}
			for i := range n {
				f.Summaries = append(f.Summaries, recording.Summary{Number: int64(i + 1), Service: Service, Caller: kit.ID("user/alice"), SHA256: fmt.Sprint(i)})
			}
			if err := atomicfile.FileIn(state.FinishedRecordings(), []byte(kit.JSON(f)), 0o600); err != nil {
				t.Error(err)
			}
		}
		numbers := func(reports []Received) (all []int64) {
			for _, r := range reports {
				for _, s := range r.Recordings {
					all = append(all, s.Number)
				}
			}
			return all
		}
		var want []int64
		for i := range int64(recording.MaxReported + 3) {
			want = append(want, i+1)
		}
		finish(2)
		stop := h.run()
		time.Sleep(time.Minute)
		finish(len(want)) // more than one report has room for
		time.Sleep(time.Minute)
		stop()
		stop = h.run()
		time.Sleep(10 * time.Minute)
		stop()
		if got := numbers(h.forge.Reports()); !slices.Equal(got, want) {
			t.Errorf("reported %v, want %v", got, want)
		}
	})
}
