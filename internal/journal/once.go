package journal

import (
	"context"
	"log/slog"
	"time"
)

// Once finds out whether an error is new, so that a loop logs each error only once. The zero value
// is ready for use. A Once must not be used by several goroutines at once.
type Once struct{ last string }

// News reports whether err is an error whose text differs from that of the error in the last call.
// It returns false for nil.
func (o *Once) News(err error) bool {
	if err == nil {
		o.last = ""
		return false
	}
	news := err.Error() != o.last
	o.last = err.Error()
	return news
}

// Every calls the function f repeatedly until ctx ends, with a pause after each call. If f returns
// an error, Every logs it with the given message and attributes. An error that is the same as the
// last one is not logged again.
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
