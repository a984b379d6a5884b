package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/florete/florete/tests/local"
)

// until waits until ok returns true. If that takes too long, until returns an error that lists the
// unfulfilled needs and the processes that have ended.
func (s *demo) until(ctx context.Context, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, local.Limit)
	defer cancel()
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s in vain for: %s%s%s", local.Limit, what, s.unfulfilled(), s.ended())
		case <-tick.C:
		}
	}
	return nil
}

// ended returns the processes that ended unexpectedly, with the last line that each has printed.
func (s *demo) ended() string {
	var b strings.Builder
	for _, name := range hostNames {
		for part, line := range s.hosts[name].Ended() {
			fmt.Fprintf(&b, "\n  %s: %s ended: %s", name, part, line)
		}
	}
	return b.String()
}
