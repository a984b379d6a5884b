package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// patience is for what takes a second or two, on a machine that is slow or busy.
const patience = 30 * time.Second

// until asks again and again until ok holds. When it does not, the error tells what is
// unfulfilled and which processes ended.
func (s *story) until(ctx context.Context, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s in vain for: %s%s%s", patience, what, s.unfulfilled(), s.ended())
		case <-tick.C:
		}
	}
	return nil
}

// ended is the last line of each process that ended by itself.
func (s *story) ended() string {
	var b strings.Builder
	for _, name := range hostNames {
		h := s.hosts[name]
		h.mu.Lock()
		for part, p := range h.running {
			select {
			case <-p.done:
				log, _ := os.ReadFile(h.log(part))
				lines := strings.Split(strings.TrimSpace(string(log)), "\n")
				fmt.Fprintf(&b, "\n  %s: %s ended: %s", name, part, lines[len(lines)-1])
			default:
			}
		}
		h.mu.Unlock()
	}
	return b.String()
}
