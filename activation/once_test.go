package activation

import (
	"testing"
	"testing/synctest"
)

func TestFirstAndSecondActivation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.wantExit(h.once(), ExitFulfilled)
		h.wantCalls(h.forge, "", 3)
		t.Log(h.lines())
		h.wantExit(h.once(), ExitFulfilled)
		h.wantCalls(h.forge, "", 3)
		t.Log(h.lines())
	})
}
