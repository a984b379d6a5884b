package confirm

import (
	"testing"
	"time"

	"github.com/florete/florete/activation/documents"
)

// TestRearm checks that a supervisor of another boot writes the deadline by its own clock.
func TestRearm(t *testing.T) {
	h := newHost(t)
	c := h.begin()
	now, err := documents.ReadClock()
	if err != nil {
		t.Fatal(err)
	}
	if c.Boot != now.Boot {
		t.Fatalf("boot %q, want %q", c.Boot, now.Boot)
	}
	c.Boot, c.Ends = "before", 0
	if err := documents.Rearm(h.State, c); err != nil {
		t.Fatal(err)
	}
	if pending, err := (supervisor{layout: h.State, armed: func() {}}).step(t.Context()); !pending || err != nil {
		t.Fatal(pending, err)
	}
	p := h.pending()
	if left := now.Left(*p); p.Boot != now.Boot || left < longest-time.Hour || left > longest+time.Minute {
		t.Errorf("%+v, %s left", p, left)
	}
}
