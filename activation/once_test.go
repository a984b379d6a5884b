package activation

import (
	"testing"
	"testing/synctest"

	"github.com/florete/florete/activation/event"
)

// TestOnlyTheFirstActivationAsks runs a hundred passes, of which only the first may send requests.
func TestOnlyTheFirstActivationAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		for range 100 {
			h.wantExit(h.once(), event.ExitFulfilled)
			h.wantCalls(h.forge, "", 3)
		}
		t.Log(h.lines())
	})
}
