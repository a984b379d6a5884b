package event

import (
	"log/slog"
	"testing"
	"time"
)

func TestWaitsAreReadable(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", time.Microsecond: "1ms", 12345 * time.Microsecond: "12ms", 173 * time.Millisecond: "170ms",
		4123 * time.Millisecond: "4.1s", 61500 * time.Millisecond: "1m2s", 57*time.Hour + 40*time.Second: "57h1m",
	} {
		if got := wait(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

func TestLevels(t *testing.T) {
	for event, want := range map[string]slog.Level{
		Fulfilled: slog.LevelInfo, Summarized: slog.LevelInfo, Notified: slog.LevelInfo,
		Failed: slog.LevelWarn, NotifyFailed: slog.LevelWarn, Disk: slog.LevelError,
	} {
		if got := (Event{Event: event}).Level(); got != want {
			t.Errorf("%s: level %s, want %s", event, got, want)
		}
	}
}
