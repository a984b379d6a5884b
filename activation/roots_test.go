package activation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// TestRootRotation checks that a host follows the replacement of its root by the two manifests
// alone. The bundles come with the manifest, without a request, and SVIDs are renewed once their
// provider issues below the newer root.
func TestRootRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.manifest.Needs = append(h.manifest.Needs, kit.CertNeed(Service, "forge"))
		h.deploy()
		h.forge.SetCRL(5, 0, nil)
		certs := []string{"cert-node", kit.CertNeed(Service).ID}
		check := func(when, bundle string, root *kit.CA, requests int) {
			t.Helper()
			synctest.Wait()
			for _, id := range certs {
				d, err := hostdir.LoadDelivered(h.config.State.Need(id), kit.Domain)
				if err != nil {
					t.Fatal(err)
				}
				if got := h.file(id, hostdir.FileBundle); got != bundle {
					t.Errorf("%s: the bundle of %s is\n%swant\n%s", when, id, got, bundle)
				}
				if root.Roots().Anchor(d.Chain) == trust.AnchorUnknown {
					t.Errorf("%s: %s leads to another root", when, id)
				}
				h.wantCalls(h.forge, id, requests)
			}
		}
		trust := func(roots ...string) {
			h.manifest.Trust.Roots = roots
			h.serial++
			h.publish(h.serial, h.manifest)
			time.Sleep(20 * time.Minute) // by a poll
		}
		defer h.run()()
		time.Sleep(time.Hour)
		former := h.CA
		check("before", former.RootPEM(), former, 1)
		next := kit.NewCA() // an hour younger
		both := former.RootPEM() + next.RootPEM()
		trust(former.RootPEM(), next.RootPEM())
		check("prepared", both, former, 1)
		time.Sleep(time.Hour)
		check("an hour later", both, former, 1)
		h.Former, h.CA = former, next
		h.forge.SetCRL(6, 0, nil)
		time.Sleep(2 * crlRootEvery)
		check("activated", both, next, 2)
		asked := h.forge.CRLRequests()
		time.Sleep(time.Hour)
		check("an hour after that", both, next, 2)
		// One finds the renewal done; two come with the audit logs, which are half an hour apart at least.
		if n := h.forge.CRLRequests() - asked; n > 3 {
			t.Errorf("%d requests for a CRL in an hour in which no root changes", n)
		}
		trust(next.RootPEM())
		check("retired", next.RootPEM(), next, 2)
	})
}

// TestRootMovesByProviders checks that while one of two providers still issues below the former
// root, the host renews nothing.
func TestRootMovesByProviders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.need("cert-node").Providers = []string{"forge", "spare"}
		former := h.CA
		time.Sleep(time.Hour)
		next := kit.NewCA()
		h.manifest.Trust.Roots = []string{former.RootPEM(), next.RootPEM()}
		h.deploy()
		for _, p := range []*Provider{h.forge, h.spare} {
			p.SetCRL(5, 0, nil)
		}
		defer h.run()()
		time.Sleep(time.Hour)
		synctest.Wait()
		h.Former, h.CA = former, next
		h.forge.SetCRL(6, 0, nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		h.wantCalls(h.forge, "cert-node", 1)
		h.spare.SetCRL(6, 0, nil)
		time.Sleep(2 * crlRootEvery)
		synctest.Wait()
		if n := len(h.forge.Calls("cert-node")) + len(h.spare.Calls("cert-node")); n != 2 {
			t.Errorf("%d requests, want 2: the first, and one below the newer root", n)
		}
	})
}
