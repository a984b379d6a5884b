package conns_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/providers/conns"
)

// TestFailures: however many listeners fail for how long, the log has a line a minute, with how many
// failures it stands for.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := &conns.Failures{Log: slog.New(slog.NewTextHandler(&log, nil))}
		until := time.Now().Add(10 * time.Minute)
		var listeners sync.WaitGroup
		for i := range 20 {
			listeners.Go(func() {
				for time.Now().Before(until) {
					f.Pause(i, syscall.EMFILE)
				}
			})
		}
		listeners.Wait()
		if n := strings.Count(log.String(), "\n"); n < 9 || n > 11 || !strings.Contains(log.String(), syscall.EMFILE.Error()) || strings.Count(log.String(), " more=2") < 8 {
			t.Errorf("%d lines in ten minutes:\n%s", n, &log)
		}
	})
}
