package journal

import (
	"context"
	"log/slog"
	"time"
)

// Once distinguishes new errors from errors that were already logged, so that a loop logs each
// error only once. The zero value is ready for use. Only one goroutine at a time may use a Once.
type Once struct{ last string }

// News reports whether err is an error, and has another text than the error in the last call.
func (o *Once) News(err error) bool {
	if err == nil {
		o.last = ""
		return false
	}
	news := err.Error() != o.last
	o.last = err.Error()
	return news
}

// Every calls f repeatedly until ctx ends, with a pause after each call. If f returns an error,
// Every logs it with message and attrs. If f returns the same error again, Every does not log it
// again.
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
