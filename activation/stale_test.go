package activation

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit"
)

// TestStaleDocuments checks that a host whose requests for documents get no answer raises an alarm,
// once, and ends it.
func TestStaleDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.need("config-documents").Renew.StaleAfter = 2 * 60 * 60
		h.deploy()
		var line atomic.Value
		line.Store("")
		h.config.Status = func(s event.Summary) { line.Store(s.Line()) }
		alarm := func(want bool) {
			t.Helper()
			synctest.Wait()
			if got := strings.Contains(line.Load().(string), "no provider has answered about this host's documents for 2h"); got != want {
				t.Errorf("status %q: alarm %v, want %v", line.Load(), got, want)
			}
		}
		stop := h.run()
		time.Sleep(4 * time.Hour) // what is unchanged is an answer
		alarm(false)
		for _, c := range h.forge.Calls("config-documents") {
			if in := (hostapi.Artifact{Documents: []hostapi.SignedDocument{kit.Signed(h.serial, h.manifest, h.Signing)}}).Tag(); c.Has != in {
				t.Fatalf("at %s the host has %q, want %q, which is in force", c.At, c.Has, in)
			}
		}
		h.forge.SetDown(true)
		time.Sleep(time.Hour + 30*time.Minute)
		alarm(false)
		time.Sleep(time.Hour)
		alarm(true)
		time.Sleep(time.Hour)
		h.forge.SetDown(false)
		time.Sleep(30 * time.Minute)
		alarm(false)
		stop()
		if n := strings.Count(h.lines(), "stale: no provider has answered"); n != 1 {
			t.Errorf("the alarm was raised %d times\n%s", n, h.lines())
		}
	})
}
