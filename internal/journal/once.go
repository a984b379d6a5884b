package journal

import (
	"context"
	"log/slog"
	"time"
)

// Once tells new errors from errors that were already logged, so that a loop logs each error once.
// The zero value is ready for use. Only one goroutine may use a Once at a time.
type Once struct{ last string }

// News reports whether err is an error with another text than in the last call.
func (o *Once) News(err error) bool {
	if err == nil {
		o.last = ""
		return false
	}
	news := err.Error() != o.last
	o.last = err.Error()
	return news
}

// Every calls f repeatedly until ctx ends, and pauses after each call. It logs an error of f with
// message and attrs. It does not log the same error again until the error changes.
func Every(ctx context.Context, pause time.Duration, log *slog.Logger, f func(context.Context) error, message string, attrs ...any) {
	var failed Once
	for ctx.Err() == nil {
		if err := f(ctx); ctx.Err() == nil && failed.News(err) {
			log.Error(message, append([]any{"error", err}, attrs...)...)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
