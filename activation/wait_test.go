package activation

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// gaps returns the times between calls.
func gaps(calls []Call) (all []time.Duration) {
	for i := 1; i < len(calls); i++ {
		all = append(all, calls[i].At.Sub(calls[i-1].At))
	}
	return all
}

// refuse makes a provider refuse one need.
func refuse(p *Provider, need string, e *hostapi.Error) {
	p.SetRefuse(func(c Call) *hostapi.Error {
		if c.Need == need {
			return e
		}
		return nil
	})
}

func TestProviderDownForHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.forge.SetDown(true)
		stop := h.run()
		time.Sleep(6 * time.Hour)
		calls := h.forge.Calls("")
		if n := len(calls); n < 6*60/5 || n > 400 {
			t.Fatalf("%d attempts in six hours, want about one every 2.5 minutes", n)
		}
		longest := time.Duration(0)
		for _, g := range gaps(calls) {
			longest = max(longest, g)
		}
		if longest > 5*time.Minute+time.Second || longest < 4*time.Minute {
			t.Fatalf("longest wait %s, want just under 5 minutes", longest)
		}
		h.wantLine("cert-node: attempt 3 to forge failed: transient (unavailable): provider service/forge/florete-provider-cert at forge:1: dial tcp: connection refused; next in ")
		h.wantLine("oidc-outline: waits for cert-node")
		if s := h.state("oidc-outline"); s.State != hostdir.NeedBlocked || s.Total != 0 {
			t.Fatalf("oidc-outline is %s after %d attempts, want blocked after none", s.State, s.Total)
		}
		h.forge.SetDown(false)
		time.Sleep(5 * time.Minute)
		if s := h.state("cert-node"); s.State != hostdir.NeedFulfilled || s.Total != len(calls)+1 && s.Total < len(calls) {
			t.Fatalf("%+v", s)
		}
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestEnded checks that an expired certificate is requested again within seconds, however long the
// provider was down, since a host cannot do anything without it.
func TestEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		stop := h.run()
		time.Sleep(time.Minute)
		h.forge.SetDown(true)
		time.Sleep(time.Until(h.state("cert-node").Expires.Add(2 * needstate.EndedMost).Time))
		ended := len(h.forge.Calls(""))
		time.Sleep(time.Hour)
		all := gaps(h.forge.Calls("")[ended:])
		if len(all) < 100 {
			t.Fatalf("%d attempts in an hour", len(all))
		}
		for _, g := range all {
			if g > needstate.EndedMost+time.Millisecond {
				t.Fatalf("waited %s, want at most %s", g, needstate.EndedMost)
			}
		}
		h.forge.SetDown(false)
		time.Sleep(needstate.EndedMost + time.Second)
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestOwnProvider checks that a host that waits for a provider on itself is served soon after that
// starts.
func TestOwnProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.manifest.Host = "forge"
		h.deploy()
		h.forge.SetDown(true)
		stop := h.run()
		time.Sleep(time.Hour)
		for _, g := range gaps(h.forge.Calls("")) {
			if g > needstate.OwnMost+time.Millisecond {
				t.Fatalf("waited %s, want at most %s", g, needstate.OwnMost)
			}
		}
		h.wantExit(stop(), event.ExitWaiting)
	})
}

func TestFirstWaitsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.config.Backoff = needstate.Backoff{Initial: 200 * time.Millisecond, Max: 2 * time.Second}
		h.forge.SetDown(true)
		stop := h.run()
		time.Sleep(time.Minute)
		h.wantExit(stop(), event.ExitWaiting)
		for i, g := range gaps(h.forge.Calls("")) {
			if limit := min(200*time.Millisecond<<min(i, 10), 2*time.Second); g > limit+time.Millisecond {
				t.Errorf("wait %d is %s, want at most %s", i+1, g, limit)
			}
		}
	})
}

func TestRetryAfterIsTheLeastWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		refuse(h.forge, "oidc-outline", hostapi.Errorf(hostapi.CodeBusy, "busy").After(10*time.Minute))
		stop := h.run()
		time.Sleep(3 * time.Hour)
		stop()
		calls := h.forge.Calls("oidc-outline")
		if len(calls) < 10 {
			t.Fatalf("%d attempts", len(calls))
		}
		for _, g := range gaps(calls) {
			if g < 10*time.Minute || g > 15*time.Minute+time.Second {
				t.Errorf("asked again after %s, want 10 minutes and up to 5 of jitter", g)
			}
		}
	})
}

func TestDeniedIsAskedHourly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		refuse(h.forge, "oidc-outline", hostapi.Errorf(hostapi.CodeNotGranted, "no grant"))
		stop := h.run()
		time.Sleep(24 * time.Hour)
		h.wantExit(stop(), event.ExitRefused)
		calls := h.forge.Calls("oidc-outline")
		if len(calls) < 22 || len(calls) > 24 {
			t.Fatalf("asked %d times in a day", len(calls))
		}
		for _, g := range gaps(calls) {
			if g < time.Hour {
				t.Errorf("asked again after %s", g)
			}
		}
		h.wantLine("oidc-outline: attempt 1 to forge failed: denied (not-granted): no grant; next in 1h")
	})
}

// TestReinstated checks that with a new certificate a host requests at once the needs that were
// denied to the revoked one, also if it stops, or gets other documents, before the answer comes.
func TestReinstated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.config.Refetch = t.TempDir()
		var reinstated, answers atomic.Bool
		h.forge.SetRefuse(func(c Call) *hostapi.Error {
			if c.Need != "oidc-outline" {
				return nil
			}
			if !reinstated.Load() {
				return hostapi.Errorf(hostapi.CodeRevoked, "node is revoked")
			}
			if !answers.Load() {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		stop := h.run()
		time.Sleep(time.Minute)
		h.wantCalls(h.forge, "oidc-outline", 1)
		reinstated.Store(true)
		h.touch("cert-node", time.Now())
		time.Sleep(needstate.RefetchPoll + time.Second)
		h.wantCalls(h.forge, "oidc-outline", 2)
		stop()
		answers.Store(true)
		stop = h.run()
		time.Sleep(time.Minute)
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestReinstatedByList checks that with a newer revocation list a host requests at once the needs of
// an identity that was revoked and may be reinstated.
func TestReinstatedByList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.forge.SetWatch(true)
		var reinstated atomic.Bool
		h.forge.SetRefuse(func(c Call) *hostapi.Error {
			if c.Need == "oidc-outline" && !reinstated.Load() {
				return hostapi.Errorf(hostapi.CodeRevoked, "service/outline is revoked")
			}
			return nil
		})
		stop := h.run()
		time.Sleep(time.Minute)
		h.wantCalls(h.forge, "oidc-outline", 1)
		list := kit.Revocations(1, h.Signing, revocation.Target{ID: kit.ID("user/eve")})
		h.forge.Revoke(1, list) // which says nothing of the service
		time.Sleep(time.Minute)
		h.wantCalls(h.forge, "oidc-outline", 2)
		reinstated.Store(true)
		h.forge.Revoke(2, kit.Continued(list, h.Signing))
		time.Sleep(time.Minute)
		h.wantCalls(h.forge, "oidc-outline", 3)
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestInvalidToOneProvider checks that a request that one provider finds invalid, such as one of an
// older release, goes to another, and that it is given up if both do, but not while one of them is
// down.
func TestInvalidToOneProvider(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	odd := hostapi.Errorf(hostapi.CodeUnknownMethod, "no such endpoint")
	down := hostapi.Errorf(hostapi.CodeUnavailable, "down")
	for name, c := range map[string]struct {
		forge, spare *hostapi.Error
		want         hostdir.NeedStatus
		calls        int // of the spare, at most
	}{
		"another answers":    {odd, nil, hostdir.NeedFulfilled, 1},
		"neither":            {odd, odd, hostdir.NeedInvalid, 1},
		"the second is down": {odd, down, hostdir.NeedWaiting, 10_000},
		"the first is down":  {down, odd, hostdir.NeedWaiting, 10_000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t)
				h.need("oidc-outline").Providers = []string{"forge", "spare"}
				h.deploy()
				for p, e := range map[*Provider]*hostapi.Error{h.forge: c.forge, h.spare: c.spare} {
					if e != nil {
						refuse(p, "oidc-outline", e)
					}
				}
				stop := h.run()
				time.Sleep(6 * time.Hour)
				stop()
				s, calls := h.state("oidc-outline"), len(h.spare.Calls("oidc-outline"))
				if s.State != c.want || calls == 0 || calls > c.calls || c.calls > 1 && calls < 30 {
					t.Errorf("%s after %d calls of the spare, want %s", s.State, calls, c.want)
				}
			})
		})
	}
}

func TestInvalidStopsUntilSomethingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		refuse(h.forge, "oidc-outline", hostapi.Errorf(hostapi.CodeMalformed, "cannot read it"))
		stop := h.run()
		time.Sleep(24 * time.Hour)
		h.wantExit(stop(), event.ExitRefused)
		h.wantCalls(h.forge, "oidc-outline", 1)
		h.wantLine("invalid (malformed): cannot read it; no more requests until the need or the manifest changes")
		h.serial++ // a new envelope alone
		h.deploy()
		h.wantExit(h.once(), event.ExitRefused)
		h.wantCalls(h.forge, "oidc-outline", 1)
		h.manifest.Roles = []string{"node"}
		h.serial++
		h.deploy()
		h.wantExit(h.once(), event.ExitRefused)
		h.wantCalls(h.forge, "oidc-outline", 2)
	})
}

func TestRestartResumesWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		refuse(h.forge, "oidc-outline", hostapi.Errorf(hostapi.CodeNotGranted, "no grant"))
		for range 12 { // each ten minutes a restart
			stop := h.run()
			time.Sleep(5 * time.Minute)
			stop()
			if err := os.Remove(h.config.State.Stopped()); err != nil { // as if it was killed
				t.Fatal(err)
			}
			time.Sleep(5 * time.Minute)
		}
		calls := h.forge.Calls("oidc-outline")
		if len(calls) != 2 {
			t.Fatalf("asked %d times in two hours with restarts, want twice", len(calls))
		}
		if s := h.state("oidc-outline"); s.Attempts != 2 || s.Total != 2 {
			t.Fatalf("%+v", s)
		}
	})
}

// TestOperatorRestarts checks that an activation that is stopped cleanly and started again requests
// at once the needs that wait or were refused, but not before the time that the provider named, nor
// after a reboot.
func TestOperatorRestarts(t *testing.T) {
	for name, c := range map[string]struct {
		refusal *hostapi.Error
		boot    string // empty: this one
		want    int    // requests of three activations, ten minutes each
	}{
		"denied":           {refusal: hostapi.Errorf(hostapi.CodeNotGranted, "no grant"), want: 3},
		"invalid":          {refusal: hostapi.Errorf(hostapi.CodeMalformed, "no"), want: 3},
		"retry after":      {refusal: hostapi.Errorf(hostapi.CodeNotGranted, "no grant").After(45 * time.Minute), want: 1},
		"busy":             {refusal: hostapi.Errorf(hostapi.CodeBusy, "busy").After(45 * time.Minute), want: 1},
		"after a reboot":   {refusal: hostapi.Errorf(hostapi.CodeNotGranted, "no grant"), boot: "another", want: 1},
		"of another state": {refusal: hostapi.Errorf(hostapi.CodeNotGranted, "no grant"), boot: "\x00", want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t)
				if boot() == "" {
					t.Skip("NOT RUN: this kernel does not have the time at which /run was made")
				}
				refuse(h.forge, "oidc-outline", c.refusal)
				for range 3 {
					stop := h.run()
					time.Sleep(10 * time.Minute)
					stop()
					if c.boot != "" {
						if err := os.WriteFile(h.config.State.Stopped(), []byte(c.boot), 0o600); err != nil {
							t.Fatal(err)
						}
					}
				}
				h.wantCalls(h.forge, "oidc-outline", c.want)
			})
		})
	}
}

func TestOnceAsksOnlyWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		refuse(h.forge, "oidc-outline", hostapi.Errorf(hostapi.CodePolicyBehind, "behind").After(time.Minute))
		h.wantExit(h.once(), event.ExitWaiting)
		h.wantExit(h.once(), event.ExitWaiting)
		h.wantCalls(h.forge, "oidc-outline", 1)
		time.Sleep(2 * time.Minute)
		h.wantExit(h.once(), event.ExitWaiting)
		h.wantCalls(h.forge, "oidc-outline", 2)
		h.forge.SetRefuse(nil)
		time.Sleep(2 * time.Minute)
		h.wantExit(h.once(), event.ExitFulfilled)
	})
}

func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		refuse(h.forge, "oidc-outline", hostapi.Errorf(hostapi.CodeUnavailable, "down"))
		h.once()
		s := h.state("oidc-outline")
		// What is on disk was written with a clock that was a year ahead.
		s.LastAttempt, s.Next, s.StateSince = s.LastAttempt.Add(365*24*time.Hour), s.Next.Add(365*24*time.Hour), s.StateSince.Add(365*24*time.Hour)
		if err := (needstate.State{NeedState: s}).Save(h.config.State, "oidc-outline"); err != nil {
			t.Fatal(err)
		}
		stop := h.run()
		time.Sleep(10 * time.Second)
		stop()
		if n := len(h.forge.Calls("oidc-outline")); n < 2 {
			t.Fatalf("not asked again within 10 seconds of a wait of at most one")
		}
	})
}

func TestOneBadNeedDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		slow, denied := kit.OIDCNeed("oidc-slow", Service, "forge"), kit.OIDCNeed("oidc-denied", Service, "forge")
		h.manifest.Needs = append(h.manifest.Needs, slow, denied)
		h.deploy()
		release := make(chan struct{})
		h.forge.SetRefuse(func(c Call) *hostapi.Error {
			switch c.Need {
			case "oidc-slow": // as a provider that hangs
				<-release
			case "oidc-denied":
				return hostapi.Errorf(hostapi.CodeNotGranted, "no grant")
			}
			return nil
		})
		begin := time.Now()
		stop := h.run()
		time.Sleep(time.Second)
		for _, id := range []string{"cert-node", "oidc-outline", "config-documents"} {
			if s := h.state(id); s.State != hostdir.NeedFulfilled || s.Fulfilled.Sub(begin) > time.Second {
				t.Errorf("%s: %s at %s", id, s.State, s.Fulfilled.Sub(begin))
			}
		}
		time.Sleep(40 * time.Second) // beyond the client's timeout
		if s := h.state("oidc-slow"); s.State != hostdir.NeedWaiting || !strings.Contains(s.Error.Message, "deadline") {
			t.Errorf("oidc-slow: %+v", s)
		}
		close(release)
		stop()
	})
}

func TestDependencyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		service := kit.CertNeed(Service, "forge")
		h.need("oidc-outline").DependsOn = []string{"cert-service-outline"}
		h.manifest.Needs = append([]document.Need{service}, h.manifest.Needs...)
		h.deploy()
		h.wantExit(h.once(), event.ExitFulfilled)
		at := map[string]int{}
		for i, c := range h.forge.Calls("") {
			at[c.Need] = i
		}
		if at["cert-node"] > at["cert-service-outline"] || at["cert-service-outline"] > at["oidc-outline"] {
			t.Fatalf("order of requests: %v", at)
		}
	})
}

func TestProvidersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.need("cert-node").Providers = []string{"forge", "spare"}
		h.need("oidc-outline").Providers = []string{"forge", "spare"}
		h.deploy()
		h.forge.SetDown(true)
		stop := h.run()
		time.Sleep(10 * time.Second)
		for _, id := range []string{"cert-node", "oidc-outline"} {
			if s := h.state(id); s.State != hostdir.NeedFulfilled || s.Provider != "spare" || s.Attempts != 2 {
				t.Errorf("%s: %+v", id, s)
			}
		}
		stop()
	})
}

// TestClockIsSet checks that requests that failed because of the clock are repeated at once when it
// is set.
func TestClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		jumped := make(chan struct{})
		h.config.ClockChanged = jumped
		refuse(h.forge, "cert-node", hostapi.Errorf(hostapi.CodeClock, "set the clock"))
		stop := h.run()
		time.Sleep(2 * time.Hour)
		h.forge.SetRefuse(nil)
		jumped <- struct{}{}
		time.Sleep(time.Second)
		if s := h.state("cert-node"); s.State != hostdir.NeedFulfilled || s.Attempts != 1 {
			t.Fatalf("%s after %d attempts: %+v", s.State, s.Attempts, s.Error)
		}
		h.wantExit(stop(), event.ExitFulfilled)
	})
}
