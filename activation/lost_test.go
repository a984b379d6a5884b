package activation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/hostdir"
)

// TestLostState checks that values that a provider lost with its state are requested again within
// minutes, once, without a command on the host.
func TestLostState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.forge.SetWatch(true)
		h.forge.SetLog("", "a", "b")
		defer h.run()()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		restart := func() {
			h.forge.SetDown(true)
			h.forge.Cut()
			time.Sleep(time.Minute)
			h.forge.SetDown(false)
			time.Sleep(time.Hour / 4)
			synctest.Wait()
		}
		restart()
		h.wantCalls(h.forge, "oidc-outline", 1) // its state is what it was
		h.forge.LoseState()
		h.forge.SetLog("", "c")
		restart()
		h.wantCalls(h.forge, "oidc-outline", 2)
		if s := h.state("oidc-outline"); s.State != hostdir.NeedFulfilled {
			t.Errorf("oidc-outline: %+v", s)
		}
		for _, rows := range [][]string{{"c", "d"}, {"c", "d", "e"}} {
			h.forge.SetLog("", rows...)
			time.Sleep(2 * time.Hour)
		}
		synctest.Wait()
		h.wantCalls(h.forge, "oidc-outline", 2)
	})
}
