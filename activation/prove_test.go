package activation

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// newProving returns a host whose documents are reverted automatically. The test itself reverts
// them, since deadlines use a clock that is not virtual.
func newProving(t *testing.T) *host {
	h := reporting(t)
	h.config.Arm = func(context.Context) error {
		if h.pending() == nil {
			t.Error("armed before the change is on disk")
		}
		return nil
	}
	h.forge.SetWatch(true)
	h.spare.SetWatch(true)
	return h
}

func (h *host) pending() *hostdir.Change {
	h.t.Helper()
	c, err := h.config.State.PendingChange()
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func (h *host) undone() *hostdir.Change {
	h.t.Helper()
	c, err := h.config.State.Undone()
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func (h *host) wantInForce(serial int64) {
	h.t.Helper()
	d, err := h.config.State.Manifest()
	if err != nil {
		h.t.Fatal(err)
	}
	if got := d.Envelope.Serial; got != serial {
		h.t.Fatalf("serial %d is in force, want %d\n%s", got, serial, h.lines())
	}
}

// goBack acts as the deadline.
func (h *host) goBack() {
	h.t.Helper()
	if c := h.pending(); c == nil || !c.Unattended {
		h.t.Fatalf("pending: %v\n%s", c, h.lines())
	}
	if c, err := documents.Undo(h.config.State, nil); c == nil || err != nil {
		h.t.Fatal(c, err)
	}
}

// offer publishes at both providers.
func (h *host) offer(serial int64, m document.Manifest) {
	h.publish(serial, m)
	h.spare.Offer(kit.Signed(serial, m, h.Signing))
}

// elsewhere returns the manifest with another provider.
func (h *host) elsewhere(provider string) document.Manifest {
	m := h.Manifest()
	for i := range m.Needs {
		m.Needs[i].Providers = []string{provider}
	}
	return m
}

// TestProved checks that documents are confirmed at once, over one new connection, which then
// serves the report and the watch, and that a new version alone needs no confirmation.
func TestProved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newProving(t)
		stop := h.run()
		for i, m := range []document.Manifest{h.with("oidc-a"), h.with("oidc-b")} {
			time.Sleep(20 * time.Minute)
			opened, reports := h.forge.Connections(), len(h.forge.Reports())
			h.serial++
			h.publish(h.serial, m)
			time.Sleep(time.Second)
			h.wantInForce(h.serial)
			if c := h.pending(); c != nil {
				t.Errorf("%s is pending\n%s", c, h.lines())
			}
			// The need that is new is of another process of the provider.
			if n := h.forge.Connections() - opened; n != 2 {
				t.Errorf("publication %d: %d connections\n%s", i, n, h.lines())
			}
			if n := len(h.forge.Reports()) - reports; n != 1 {
				t.Errorf("publication %d: %d reports", i, n)
			}
		}
		h.wantLine("manifest 2 is confirmed: provider forge answers under it")
		time.Sleep(20 * time.Minute)
		opened := h.forge.Connections()
		h.publish(h.serial+1, h.with("oidc-b"))
		time.Sleep(time.Second)
		h.wantInForce(h.serial + 1)
		if n := h.forge.Connections() - opened; n != 0 || strings.Contains(h.lines(), "manifest 4 is confirmed") {
			t.Errorf("%d connections for a version\n%s", n, h.lines())
		}
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestCutOff checks that documents that cut the host off are reverted for good, and that only newer
// ones follow.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newProving(t)
		stop := h.run()
		time.Sleep(time.Minute)
		h.spare.SetDown(true)
		h.publish(2, h.elsewhere("spare"))
		time.Sleep(50 * time.Second)
		h.wantInForce(2)
		if n := len(h.spare.Calls("")); n < 5 || n > 60 { // of three needs
			t.Errorf("%d calls in vain", n)
		}
		h.goBack()
		time.Sleep(20 * time.Second)
		h.wantInForce(1)
		h.wantLine("manifest 2 is left: provider forge answers, and did not under it")
		if c := h.undone(); c == nil || c.Answered.IsZero() || c.Missing() != "no provider answered under it" {
			t.Errorf("undone: %+v", c)
		}
		calls := len(h.forge.Calls("")) + len(h.forge.Watches())
		time.Sleep(3 * time.Hour)
		h.wantInForce(1)
		if n := len(h.forge.Calls("")) + len(h.forge.Watches()) - calls; n > 75 {
			t.Errorf("%d calls in three hours", n)
		}
		h.publish(3, h.with("oidc-a"))
		time.Sleep(time.Second)
		h.wantInForce(3)
		if p, u := h.pending(), h.undone(); p != nil || u != nil {
			t.Errorf("pending %v, undone %v\n%s", p, u, h.lines())
		}
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// foreignRoot returns the manifest with a root that signed no certificate in use.
func (h *host) foreignRoot() document.Manifest {
	m := h.Manifest()
	m.Trust.Roots = []string{kit.NewCA().RootPEM()}
	return m
}

// TestForeignRoot checks that a root below which no provider has a certificate is reverted, even
// after a long wait: needs that wait are tried at once after each change of documents.
func TestForeignRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newProving(t)
		h.config.Backoff = needstate.Backoff{Initial: 24 * time.Hour, Max: 24 * time.Hour}
		stop := h.run()
		time.Sleep(time.Minute)
		h.publish(2, h.foreignRoot())
		time.Sleep(50 * time.Second)
		h.wantInForce(2)
		if n := len(h.forge.Calls("")); n > 100 {
			t.Errorf("%d calls in vain", n)
		}
		h.goBack()
		time.Sleep(20 * time.Second)
		h.wantInForce(1)
		h.wantLine("manifest 2 is left: provider forge answers, and did not under it")
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestForeignRootWhileProviderIsDown checks that a host does not stay with a root that did not sign
// its certificate even if the provider is down meanwhile: both versions are tried in turn until a
// provider answers under one of them.
func TestForeignRootWhileProviderIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newProving(t)
		stop := h.run()
		time.Sleep(time.Minute)
		h.publish(2, h.foreignRoot())
		time.Sleep(time.Second)
		h.forge.SetDown(true)
		h.forge.Cut()
		for range 3 {
			time.Sleep(50 * time.Second)
			h.wantInForce(2)
			h.goBack()
			time.Sleep(50 * time.Second)
			h.wantInForce(1)
			time.Sleep(25 * time.Second)
		}
		h.wantLine("is tried again: no provider answers without it either")
		h.wantInForce(2)
		h.forge.SetDown(false)
		time.Sleep(30 * time.Second)
		h.wantInForce(2)
		h.goBack()
		time.Sleep(20 * time.Second)
		h.wantInForce(1)
		h.wantLine("manifest 2 is left: provider forge answers, and did not under it")
		h.publish(3, h.with("oidc-a"))
		time.Sleep(time.Minute)
		h.wantInForce(3)
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestProviderIsDown checks that a provider that is also silent under the previous documents does
// not count against the new ones: the host puts them in force again, once and for good, with few
// attempts meanwhile.
func TestProviderIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newProving(t)
		stop := h.run()
		time.Sleep(time.Minute)
		h.spare.SetDown(true)
		h.publish(2, h.elsewhere("spare"))
		time.Sleep(time.Second)
		h.forge.SetDown(true)
		h.forge.Cut()
		time.Sleep(time.Minute)
		h.goBack()
		calls := len(h.forge.Calls(""))
		time.Sleep(50 * time.Second)
		h.wantInForce(1)
		if n := len(h.forge.Calls("")) - calls; n < 5 || n > 30 {
			t.Errorf("%d calls to a provider that is down\n%s", n, h.lines())
		}
		time.Sleep(30 * time.Second)
		h.wantInForce(2)
		h.wantLine("in force again, since no provider answers under those before either: manifest of ursula, serial 2")
		if p, u := h.pending(), h.undone(); p != nil || u != nil {
			t.Errorf("pending %v, undone %v\n%s", p, u, h.lines())
		}
		calls = len(h.spare.Calls(""))
		h.forge.SetDown(false)
		time.Sleep(3 * time.Hour)
		h.wantInForce(2)
		if n := len(h.spare.Calls("")) - calls; n > 300 { // three needs, one each five minutes
			t.Errorf("%d calls in three hours", n)
		}
		h.spare.SetDown(false)
		h.offer(3, h.with("oidc-a"))
		time.Sleep(10 * time.Minute)
		h.wantInForce(3)
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestProvedAfterRestart checks an activation that starts while a change is pending, or after it
// was reverted.
func TestProvedAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newProving(t)
		stop := h.run()
		time.Sleep(time.Minute)
		h.spare.SetDown(true)
		h.offer(2, h.elsewhere("spare"))
		time.Sleep(time.Second)
		stop()
		h.wantInForce(2)
		h.spare.SetDown(false)
		stop = h.run()
		time.Sleep(time.Second)
		h.wantLine("manifest 2 is confirmed: provider spare answers under it")
		h.forge.SetDown(true)
		h.offer(3, h.elsewhere("forge"))
		time.Sleep(time.Second)
		stop()
		h.wantInForce(3)
		h.goBack()
		stop = h.run()
		time.Sleep(time.Second)
		h.wantInForce(2)
		h.wantLine("manifest 3 is left: provider spare answers, and did not under it")
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestUnarmed checks that no documents come in force without a supervisor that can revert them.
func TestUnarmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newProving(t)
		armed := h.config.Arm
		h.config.Arm = func(context.Context) error { return errors.New("no such unit") }
		stop := h.run()
		time.Sleep(time.Minute)
		h.publish(2, h.with("oidc-a"))
		time.Sleep(20 * time.Minute)
		h.wantInForce(1)
		h.wantLine("transient (change-unarmed): document from the network: nobody would go back from it: no such unit")
		if c := h.pending(); c != nil {
			t.Errorf("%s is pending", c)
		}
		stop()
		h.config.Arm = armed
		stop = h.run()
		time.Sleep(10 * time.Minute)
		h.wantInForce(2)
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestProvedWhileProviderIsFull checks that a provider that is full does not count as unreachable:
// documents stay until it has a place for this host, for ten minutes at most.
func TestProvedWhileProviderIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newProving(t)
		dial := h.config.Dial
		var full atomic.Bool
		h.config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if !full.Load() {
				return dial(ctx, network, address)
			}
			here, there := net.Pipe()
			go func() {
				defer there.Close()
				if _, err := there.Read(make([]byte, 16<<10)); err == nil {
					io.WriteString(there, "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 90\r\nContent-Length: 0\r\n\r\n")
				}
			}()
			return here, nil
		}
		stop := h.run()
		time.Sleep(time.Minute)
		full.Store(true) // the watch has its connection
		h.publish(2, h.with("oidc-a"))
		time.Sleep(20 * time.Second)
		c := h.pending()
		if c == nil || c.Deadline.Sub(c.Begun.Time) < 2*time.Minute {
			t.Fatalf("pending: %+v, want a deadline beyond the place that the provider returned\n%s", c, h.lines())
		}
		full.Store(false)
		time.Sleep(2 * time.Minute)
		h.wantInForce(2)
		h.wantLine("manifest 2 is confirmed: provider forge answers under it")
		h.wantExit(stop(), event.ExitFulfilled)
	})
}
