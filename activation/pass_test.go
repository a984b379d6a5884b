package activation

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// TestOneConnectionForAPass checks that needs that are due at the same time share one connection to
// each process of a provider, and that certificates come over the connection on which the host
// enrolled.
func TestOneConnectionForAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		for _, name := range []string{"a", "b", "c", "d"} {
			h.manifest.Needs = append(h.manifest.Needs, kit.CertNeed(kit.ID("service/"+name), "forge"))
		}
		h.deploy()
		var mu sync.Mutex
		dials := 0
		dial := h.config.Dial
		h.config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			mu.Lock()
			dials++
			mu.Unlock()
			return dial(ctx, network, address)
		}
		stop := h.run()
		time.Sleep(time.Minute)
		h.wantExit(stop(), event.ExitFulfilled)
		// To enrol and for the certificates of four services, for oidc and for the documents.
		if dials != 3 || len(h.forge.Calls("")) != 7 {
			t.Errorf("%d connections for %d requests, want 3 for 7", dials, len(h.forge.Calls("")))
		}
	})
}

// TestSwallowedProvider checks that a provider whose packets are lost delays the attempt at the
// next one by two seconds, each time.
func TestSwallowedProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		for i := range h.manifest.Needs {
			h.manifest.Needs[i].Providers = []string{"forge", "spare"}
		}
		h.deploy()
		h.spare.Offer(kit.Signed(h.serial, h.manifest, h.Signing))
		dial := h.config.Dial
		h.config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == "forge:1" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return dial(ctx, network, address)
		}
		begin := time.Now()
		stop := h.run()
		time.Sleep(time.Minute)
		h.wantExit(stop(), event.ExitFulfilled)
		// To enrol, then for all others at the same time.
		for _, n := range []string{"cert-node", "oidc-outline", "config-documents"} {
			s := h.state(n)
			if took := s.Fulfilled.Sub(begin); s.State != hostdir.NeedFulfilled || s.Provider != "spare" || took > 5*time.Second {
				t.Errorf("%s: %s by %s after %s, want by spare within 5s", n, s.State, s.Provider, took)
			}
		}
	})
}
