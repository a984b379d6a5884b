package oidc

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// linesEach is the number of times that one message is logged in an hour. The limit is necessary
// because Dex logs each refused request, and anybody can cause refusals.
const linesEach = 20

// sparing is a slog.Handler that drops messages which are logged too often. The audit log shows how
// often the events occurred.
type sparing struct {
	slog.Handler
	said *said
}

// said counts how often each message was logged in this hour. Messages are constants of Dex.
type said struct {
	mu    sync.Mutex
	since time.Time
	times map[string]int
}

func (s *sparing) Handle(ctx context.Context, r slog.Record) error {
	s.said.mu.Lock()
	if r.Time.Sub(s.said.since) > time.Hour {
		s.said.since, s.said.times = r.Time, map[string]int{}
	}
	s.said.times[r.Message]++
	n := s.said.times[r.Message]
	s.said.mu.Unlock()
	switch {
	case n > linesEach:
		return nil
	case n == linesEach:
		r.Add("more", "left out for an hour")
	}
	return s.Handler.Handle(ctx, r)
}

func (s *sparing) WithAttrs(a []slog.Attr) slog.Handler {
	return &sparing{s.Handler.WithAttrs(a), s.said}
}

func (s *sparing) WithGroup(name string) slog.Handler {
	return &sparing{s.Handler.WithGroup(name), s.said}
}
