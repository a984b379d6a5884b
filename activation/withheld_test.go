package activation

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/tests/kit"
)

// TestWithheldDocuments checks that a host whose provider serves old documents for ever raises an
// alarm, once, when the version that the revocation list names is due, and ends it when the
// provider serves that.
func TestWithheldDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		var line atomic.Value
		line.Store("")
		h.config.Status = func(s event.Summary) { line.Store(s.Line()) }
		alarm := func(want bool) {
			t.Helper()
			synctest.Wait()
			if got := strings.Contains(line.Load().(string), "withheld: its manifest has serial 1, and revocation list 3 names serial 2, which was due by "); got != want {
				t.Errorf("status %q: alarm %v, want %v", line.Load(), got, want)
			}
		}
		stop := h.run()
		time.Sleep(time.Hour)
		alarm(false)
		h.forge.Revoke(3, kit.Naming(3, h.Signing, trust.NamedDocuments{Serial: 2, Due: unixtime.Of(time.Now().Add(24 * time.Hour))}))
		time.Sleep(23 * time.Hour)
		alarm(false)
		time.Sleep(2 * time.Hour)
		alarm(true)
		h.publish(2, h.manifest)
		time.Sleep(time.Minute)
		time.Sleep(20 * time.Minute) // until the next poll
		alarm(false)
		stop()
		if n := strings.Count(h.lines(), "withheld: its manifest has serial 1"); n != 1 {
			t.Errorf("the alarm was raised %d times\n%s", n, h.lines())
		}
	})
}
