package attacks

import (
	"testing"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestBothNames checks that a service has two names, the name that all hosts share and the name
// with its host. Each name has its own callers and leads to its own certificate.
func TestBothNames(t *testing.T) {
	c := start(t)
	for need, id := range map[string]spiffe.ID{"cert-shared-echo": kit.ID("service/echo"), "cert-service-echo": kit.ID("service/b/echo")} {
		if _, err := hostdir.LoadSVID(c.b.Layout().Need(need), id); err != nil {
			t.Error(err)
		}
		reached := false
		for _, r := range c.c.Manifest.Forwarder.Reach {
			if r.ID != id {
				continue
			}
			reached = true
			if err := agenttest.DialAs(t, uidAlice, r.Listen.String()); err != nil {
				t.Errorf("alice at %s: %v", id, err)
			}
			if err := agenttest.DialAs(t, uidBob, r.Listen.String()); err == nil {
				t.Errorf("bob reaches %s", id)
			}
		}
		if !reached {
			t.Errorf("c does not reach %s", id)
		}
	}
}
