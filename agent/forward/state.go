package forward

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/florete/florete/internal/hostdir"
)

// stateRetry is the interval at which AwaitState tries to create the state directory again.
const stateRetry = time.Second

// AwaitState ensures that the state directory exists before Confine is called, because Landlock can
// only permit directories that exist. It creates the directory or, if it is not permitted to, waits
// until activation has created it. AwaitState returns an error only if ctx ends.
func AwaitState(ctx context.Context, state hostdir.Layout, log *slog.Logger) error {
	waits := false
	ticker := time.NewTicker(stateRetry)
	defer ticker.Stop()
	for {
		if _, err := os.Stat(string(state)); err == nil {
			return nil
		}
		err := os.MkdirAll(string(state), 0o755)
		if err == nil {
			log.Info("made the state directory, which flor activate fills", "path", string(state))
			return nil
		}
		if !waits {
			log.Warn("waiting for the state directory, which flor activate makes", "error", err)
			waits = true
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
