package activation

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/activation/event"
)

func TestUnitsAreToldOfChangesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.need("oidc-outline").Renew.Interval = 600 // the answer stays the same
		h.need("cert-node").OnChange = []string{"agent.service"}
		h.deploy()
		stop := h.run()
		time.Sleep(20 * time.Hour)
		stop()
		if n := len(h.forge.Calls("oidc-outline")); n < 100 {
			t.Fatalf("%d requests", n)
		}
		count := map[string]int{}
		for _, a := range h.notified {
			count[a]++
		}
		if count["outline.service"] != 1 || count["agent.service"] != 2 {
			t.Errorf("notified %v", count)
		}
	})
}

// TestUntoldUnits checks that units that could not be notified are notified later, also after a
// restart, without another request for the need.
func TestUntoldUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.notifyErr = errors.New("unit is masked")
		h.wantExit(h.once(), event.ExitWaiting)
		h.wantLine("oidc-outline: fulfilled, but units could not be notified: unit is masked; next in ")
		if e := h.state("oidc-outline").Error; e == nil || e.Code != codeNotify.Name {
			t.Errorf("recorded: %+v", e)
		}
		stop := h.run()
		time.Sleep(time.Hour)
		stop()
		h.notifyErr = nil
		stop = h.run()
		time.Sleep(time.Second)
		h.wantExit(stop(), event.ExitFulfilled)
		if len(h.notified) != 1 {
			t.Errorf("notified %v", h.notified)
		}
		if s := h.state("oidc-outline"); s.Error != nil || s.NotifiedGeneration != 1 {
			t.Errorf("%+v", s)
		}
		h.wantCalls(h.forge, "oidc-outline", 1)
	})
}

// TestOneUnitOfTwo checks that one unit that cannot be notified, or takes long, does not cause
// repeated restarts of the other.
func TestOneUnitOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.need("oidc-outline").OnChange = []string{"slow.service", "masked.service", "outline.service"}
		h.deploy()
		count := map[string]int{}
		h.config.Notify = func(ctx context.Context, unit string) error {
			count[unit]++
			switch unit {
			case "masked.service":
				return errors.New("unit is masked")
			case "slow.service":
				<-ctx.Done()
			}
			return ctx.Err()
		}
		stop := h.run()
		time.Sleep(time.Hour)
		stop()
		if count["masked.service"] < 10 || count["slow.service"] < 10 || count["outline.service"] != 1 {
			t.Errorf("notified %v", count)
		}
	})
}

func TestNobodyToTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.notifyErr = ErrNoNotifier
		h.wantExit(h.once(), event.ExitFulfilled)
		h.wantLine("oidc-outline: not restarted: outline.service: no systemd runs here and no --hook is given")
	})
}
