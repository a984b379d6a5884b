package journal_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/journal"
)

// TestEvery checks that Every logs an error when it first occurs, when it changes, and when it
// comes back. It must not log the error that f returns because ctx ended.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		errs := []error{nil, errors.New("full"), errors.New("full"), errors.New("gone"), nil, errors.New("gone"), context.Canceled}
		began, calls := time.Now(), 0
		journal.Every(ctx, time.Minute, slog.New(slog.NewTextHandler(&log, nil)), func(context.Context) error {
			err := errs[calls]
			if calls++; calls == len(errs) {
				cancel()
			}
			return err
		}, "not kept", "service", "wiki")
		if took := time.Since(began); took != 6*time.Minute {
			t.Errorf("%d calls in %v", calls, took)
		}
		var logged []string
		for line := range strings.Lines(log.String()) {
			_, rest, _ := strings.Cut(line, "level=")
			logged = append(logged, rest)
		}
		want := `ERROR msg="not kept" error=full service=wiki
ERROR msg="not kept" error=gone service=wiki
ERROR msg="not kept" error=gone service=wiki
`
		if got := strings.Join(logged, ""); got != want {
			t.Errorf("logged:\n%swant:\n%s", got, want)
		}
	})
}
