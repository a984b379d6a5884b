package activation

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// outlineRestarts returns the number of notifications to the unit of outline.
func (h *host) outlineRestarts() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, unit := range h.notified {
		if unit == "outline.service" {
			n++
		}
	}
	return n
}

// wantRotation checks which secret is delivered, and how often its unit was notified.
func (h *host) wantRotation(secret string, rotations, restarts int) {
	h.t.Helper()
	s := h.state("oidc-outline")
	if got := h.file("oidc-outline", "client-secret"); got != secret || s.Rotations != rotations || s.WantRotation != 0 {
		h.t.Errorf("secret %q of rotation %d, next %d, want %q of rotation %d\n%s", got, s.Rotations, s.WantRotation, secret, rotations, h.lines())
	}
	if n := h.outlineRestarts(); n != restarts {
		h.t.Errorf("outline.service was notified %d times, want %d", n, restarts)
	}
}

// TestRotate checks that a request for another secret creates one, delivers it and notifies once,
// also if the answer is lost and activation dies, and that later fetches do not change it.
func TestRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.config.Refetch = t.TempDir()
		h.touch(hostdir.RotateFile("oidc-outline"), time.Now().Add(-time.Hour)) // before there was one
		stop := h.run()
		time.Sleep(time.Minute)
		h.wantRotation("secret-1", 0, 1)

		h.forge.SetLose(func(c Call) bool { return c.Rotation != 0 })
		h.touch(hostdir.RotateFile("oidc-outline"), time.Now())
		time.Sleep(time.Minute)
		stop()
		h.wantOneRotationSent()
		h.forge.SetLose(nil)
		stop = h.run()
		time.Sleep(10 * time.Minute)
		h.wantRotation("secret-1.1", 1, 2)

		h.touch("oidc-outline", time.Now())
		time.Sleep(time.Minute)
		h.wantRotation("secret-1.1", 1, 2)
		h.touch(hostdir.RotateFile("oidc-outline"), time.Now())
		time.Sleep(time.Minute)
		h.wantRotation("secret-1.2", 2, 3)
		h.wantExit(stop(), event.ExitFulfilled)
		if n := h.forge.Rotated("oidc-outline"); n != 2 {
			t.Errorf("the provider rotated %d times, want 2", n)
		}
	})
}

// wantOneRotationSent checks that a rotation is one request, however often it was sent.
func (h *host) wantOneRotationSent() {
	h.t.Helper()
	var keys []string
	for _, c := range h.forge.Calls("oidc-outline") {
		if c.Rotation != 0 {
			keys = append(keys, c.Key)
		}
	}
	sent := len(keys)
	if slices.Sort(keys); sent < 2 || len(slices.Compact(keys)) != 1 {
		h.t.Errorf("%d requests with keys %v, want several with one", sent, keys)
	}
}

// TestRotateRefused checks that a host whose rotation is refused, since there is no secret or its
// state is older than the provider's, fetches the secret in force.
func TestRotateRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.config.Refetch = t.TempDir()
		stop := h.run()
		time.Sleep(time.Minute)
		h.touch(hostdir.RotateFile("cert-node"), time.Now())
		time.Sleep(time.Minute)
		if s := h.state("cert-node"); s.State != hostdir.NeedFulfilled || s.WantRotation != 0 {
			t.Errorf("%+v", s)
		}
		h.wantLine("cert-node: attempt 1 to forge failed: denied (rotation): no secret to rotate")

		h.forge.Rotate("oidc-outline")
		h.forge.Rotate("oidc-outline")
		h.touch(hostdir.RotateFile("oidc-outline"), time.Now())
		time.Sleep(time.Minute)
		h.wantRotation("secret-1.2", 2, 2)
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestRotateByAge checks that a secret is replaced when it reaches the maximum age in the manifest,
// however often it is fetched.
func TestRotateByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.need("oidc-outline").Renew = document.Renew{Rotate: 10 * 3600, Interval: 3600}
		h.deploy()
		stop := h.run()
		time.Sleep(9 * time.Hour)
		h.wantRotation("secret-1", 0, 1)
		time.Sleep(time.Hour + time.Minute)
		h.wantRotation("secret-1.1", 1, 2)
		time.Sleep(50 * time.Hour)
		if n := h.state("oidc-outline").Rotations; n < 5 || n > 7 || h.outlineRestarts() != n+1 {
			t.Errorf("%d rotations and %d restarts in 60 hours, want one in ten", n, h.outlineRestarts())
		}
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestRotateByAgeRefused checks that after a refusal the next request comes a maximum age later,
// not at once.
func TestRotateByAgeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.need("cert-node").Renew = document.Renew{Rotate: 3600}
		h.deploy()
		stop := h.run()
		time.Sleep(5*time.Hour + time.Minute)
		h.wantExit(stop(), event.ExitFulfilled)
		if n := len(h.forge.Calls("cert-node")); n < 9 || n > 13 {
			t.Errorf("%d requests in five hours, want one and two more in each hour", n)
		}
	})
}

// TestRotateOrdered checks that a rotation that an operator orders in the answer to a report is
// done once, however often the order comes, and that a refused one is not requested again.
func TestRotateOrdered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := reporting(t)
		h.forge.SetOrders(map[string]int{"oidc-outline": 1, "cert-node": 1, "gone": 1})
		stop := h.run()
		time.Sleep(time.Hour)
		h.wantRotation("secret-1.1", 1, 2)
		h.wantExit(stop(), event.ExitFulfilled)
		stop = h.run()
		h.forge.SetOrders(map[string]int{"oidc-outline": 2, "cert-node": 1})
		time.Sleep(time.Hour)
		h.wantRotation("secret-1.2", 2, 3)
		h.forge.SetOrders(map[string]int{"oidc-outline": 7}) // of another host's past
		time.Sleep(time.Hour)
		h.wantRotation("secret-1.2", 2, 3)
		h.wantExit(stop(), event.ExitFulfilled)
		if n := h.forge.Rotated("oidc-outline"); n != 2 {
			t.Errorf("the provider rotated %d times, want 2", n)
		}
		refused := 0
		for _, c := range h.forge.Calls("cert-node") {
			if c.Rotation != 0 {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("cert-node: %d rotations requested, want 1", refused)
		}
	})
}

// TestRotateOfLostState checks that if a provider has lost its count of rotations, an order makes
// the host fetch the secret in force there, and later orders work as before.
func TestRotateOfLostState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := reporting(t)
		stop := h.run()
		for n := range 3 {
			h.forge.SetOrders(map[string]int{"oidc-outline": n + 1})
			time.Sleep(time.Hour)
		}
		h.wantRotation("secret-1.3", 3, 4)
		h.forge.Forget("oidc-outline")
		h.forge.SetOrders(map[string]int{"oidc-outline": 4})
		time.Sleep(time.Hour)
		h.wantRotation("secret-1", 0, 5)
		h.forge.SetOrders(map[string]int{"oidc-outline": 1})
		time.Sleep(time.Hour)
		h.wantRotation("secret-1.1", 1, 6)
		h.wantExit(stop(), event.ExitFulfilled)
	})
}
