package transport

import "testing"

// Handshakes returns the number of handshakes under way.
func (l *Listener) Handshakes() int64 { return l.handshakes.n.Load() }

func TestHandshakes(t *testing.T) {
	var h handshakes
	var ends []func()
	for i := range maxHandshakes {
		if h.verify(nil) != (i >= retryThreshold) {
			t.Fatalf("with %d under way: verify is %v", i, h.verify(nil))
		}
		end, ok := h.begin()
		if !ok {
			t.Fatalf("the %dth is refused", i+1)
		}
		ends = append(ends, end)
	}
	if _, ok := h.begin(); ok {
		t.Error("one too many is let in")
	}
	ends[0]()
	ends[0]()
	if _, ok := h.begin(); !ok {
		t.Error("nobody is let in after one has ended")
	}
	if _, ok := h.begin(); ok {
		t.Error("one too many is let in after one has ended")
	}
}
