package journal

import (
	"context"
	"log/slog"
	"time"
)

// Once distinguishes new errors from errors that were logged already. The zero value is ready for
// use. It must not be used by several goroutines at once.
type Once struct{ last string }

// News reports whether err is not nil and differs from the error of the last call.
func (o *Once) News(err error) bool {
	if err == nil {
		o.last = ""
		return false
	}
	news := err.Error() != o.last
	o.last = err.Error()
	return news
}

// Every calls f until ctx ends, and waits for pause after each call. An error of f is logged with
// message and attrs, once until it changes.
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
