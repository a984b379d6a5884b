package activation

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// with returns the manifest with one more need.
func (h *host) with(id string) document.Manifest {
	m := h.Manifest()
	m.Needs = append(m.Needs, kit.OIDCNeed(id, m.Needs[1].For, "forge"))
	return m
}

// TestWatch checks that published documents are in force within a second, repeatedly, and over the
// existing connection.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.forge.SetWatch(true)
		stop := h.run()
		time.Sleep(time.Minute)
		for i, id := range []string{"oidc-a", "oidc-b", "oidc-c"} {
			h.serial++
			h.publish(h.serial, h.with(id))
			time.Sleep(time.Second)
			if s := h.state(id); s.State != hostdir.NeedFulfilled {
				t.Errorf("publication %d after a second: %s is %q", i, id, s.State)
			}
			time.Sleep(time.Hour)
		}
		h.wantExit(stop(), event.ExitFulfilled)
		if n := len(h.forge.Calls("config-documents")); n != 1 {
			t.Errorf("%d polls beside the watch, want the first alone", n)
		}
		watches := h.forge.Watches()
		if n := len(watches); n < 40 || n > 60 {
			t.Errorf("%d watches in three hours, want one every four minutes", n)
		}
		for i, w := range watches[1:] {
			if w.Serial < watches[i].Serial || w.Serial == 0 {
				t.Errorf("from revision %d after %d", w.Serial, watches[i].Serial)
			}
		}
	})
}

// TestWatchCut checks that a watch that was cut off resumes.
func TestWatchCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.forge.SetWatch(true)
		stop := h.run()
		time.Sleep(10 * time.Minute)
		h.forge.SetDown(true)
		h.forge.Cut()
		time.Sleep(time.Minute)
		h.serial++
		h.publish(h.serial, h.with("oidc-a"))
		h.forge.SetDown(false)
		time.Sleep(5 * time.Minute)
		if s := h.state("oidc-a"); s.State != hostdir.NeedFulfilled {
			t.Errorf("it is %q", s.State)
		}
		h.wantExit(stop(), event.ExitFulfilled)
		watches := h.forge.Watches()
		if last := watches[len(watches)-1]; last.Serial == 0 {
			t.Errorf("the last watch is %+v", last)
		}
	})
}

// TestWatchNotOffered checks that a host polls a provider of an older release, without trying to
// watch it again and again.
func TestWatchNotOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		stop := h.run()
		time.Sleep(10 * time.Hour)
		if n := len(h.forge.Calls("config-documents")); n < 38 || n > 45 {
			t.Errorf("%d polls in ten hours, want one every quarter", n)
		}
		if n := len(h.forge.Unknown()); n < 9 || n > 60 { // where it looks for what to report at that moment, it takes another
			t.Errorf("%d calls for a watch in ten hours, want one an hour", n)
		}
		h.forge.SetWatch(true) // it was upgraded
		time.Sleep(time.Hour)
		h.serial++
		h.publish(h.serial, h.with("oidc-a"))
		time.Sleep(time.Second)
		if s := h.state("oidc-a"); s.State != hostdir.NeedFulfilled {
			t.Errorf("it is %q", s.State)
		}
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestWatchOne checks that one of several providers is watched, and the others are polled.
func TestWatchOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		for i, n := range h.manifest.Needs {
			h.manifest.Needs[i].Providers = append(slices.Clip(n.Providers), "spare")
		}
		h.deploy()
		h.forge.SetWatch(true)
		h.spare.SetWatch(true)
		h.spare.Offer(kit.Signed(h.serial, h.manifest, h.Signing))
		stop := h.run()
		time.Sleep(2 * time.Hour)
		if f, s := len(h.forge.Watches()), len(h.spare.Watches()); f < 25 || s != 0 {
			t.Errorf("%d and %d watches, want them at one", f, s)
		}
		if f, s := len(h.forge.Calls("config-documents")), len(h.spare.Calls("config-documents")); f != 1 || s < 7 || s > 9 {
			t.Errorf("%d and %d polls, want those of the other", f, s)
		}
		t.Log("what only the other has comes with a poll, and the watched one is behind, which changes nothing")
		m := h.manifest
		m.Needs = append(slices.Clip(m.Needs), kit.OIDCNeed("oidc-a", m.Needs[1].For, "forge"))
		h.serial++
		h.spare.Offer(kit.Signed(h.serial, m, h.Signing))
		time.Sleep(20 * time.Minute)
		if s := h.state("oidc-a"); s.State != hostdir.NeedFulfilled {
			t.Errorf("it is %q", s.State)
		}
		t.Log("when the watched one is gone the other is watched")
		h.forge.SetDown(true)
		h.forge.Cut()
		time.Sleep(2 * time.Minute)
		if len(h.spare.Watches()) == 0 {
			t.Error("nothing is watched")
		}
		stop()
	})
}

// TestWatchRefused checks that documents from a watch that are refused leave the present ones in
// force, and are not requested again and again.
func TestWatchRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.serial = 4
		h.deploy()
		h.forge.SetWatch(true)
		stop := h.run()
		time.Sleep(time.Minute)
		h.publish(5, h.manifest)
		time.Sleep(6 * time.Minute)
		before := len(h.forge.Watches())
		h.publish(3, h.with("oidc-a"))
		time.Sleep(time.Hour)
		if e := h.state("config-documents").Error; e == nil || e.Code != "older-document" {
			t.Errorf("error %+v", e)
		}
		if n := len(h.forge.Watches()) + len(h.forge.Calls("config-documents")) - before; n > 60 {
			t.Errorf("%d calls in an hour", n)
		}
		h.publish(6, h.with("oidc-b"))
		time.Sleep(6 * time.Minute)
		if s := h.state("oidc-b"); s.State != hostdir.NeedFulfilled {
			t.Errorf("it is %q", s.State)
		}
		stop()
	})
}

// TestWatchReports checks that a host that watches reports over the same connection.
func TestWatchReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := reporting(t)
		h.forge.SetWatch(true)
		stop := h.run()
		time.Sleep(time.Hour)
		connections, reports := h.forge.Connections(), len(h.forge.Reports())
		time.Sleep(3 * time.Hour)
		reports = len(h.forge.Reports()) - reports
		if reports < 32 || reports > 47 {
			t.Errorf("%d reports in three hours", reports)
		}
		if n := h.forge.Connections() - connections; n > reports/2 { // where it looks for what to report at that moment, it takes another
			t.Errorf("%d connections in three hours, want far fewer than %d reports", n, reports)
		}
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestConnections checks that documents, the report of their effect and the watch for the next ones
// share one connection.
func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := reporting(t)
		h.forge.SetWatch(true)
		stop := h.run()
		time.Sleep(5 * time.Second)
		// One for the node's SVID, one each for the processes of the other kinds.
		kinds := map[string]bool{}
		for _, n := range h.manifest.Needs {
			kinds[n.Kind] = true
		}
		began := h.forge.Connections()
		if began > 1+len(kinds) || len(h.forge.Reports()) != 1 {
			t.Errorf("%d connections for kinds %v, %d reports", began, kinds, len(h.forge.Reports()))
		}
		time.Sleep(20 * time.Minute)
		before, reports := h.forge.Connections(), len(h.forge.Reports())
		m := h.manifest
		m.Roles = []string{"another"}
		h.publish(2, m)
		time.Sleep(5 * time.Second)
		if n := h.forge.Connections() - before; n != 0 || len(h.forge.Reports()) == reports {
			t.Errorf("%d connections for new documents, %d reports", n, len(h.forge.Reports())-reports)
		}
		h.wantExit(stop(), event.ExitFulfilled)
	})
}
