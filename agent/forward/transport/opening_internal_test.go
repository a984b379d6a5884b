package transport

import "testing"

// Opening is how many handshakes are under way.
func (l *Listener) Opening() int64 { return l.opening.n.Load() }

func TestOpening(t *testing.T) {
	var o opening
	var ends []func()
	for i := range maxOpening {
		if o.verify(nil) != (i >= unverified) {
			t.Fatalf("with %d under way: verify is %v", i, o.verify(nil))
		}
		end, ok := o.begin()
		if !ok {
			t.Fatalf("the %dth is refused", i+1)
		}
		ends = append(ends, end)
	}
	if _, ok := o.begin(); ok {
		t.Error("one too many is let in")
	}
	ends[0]()
	ends[0]()
	if _, ok := o.begin(); !ok {
		t.Error("nobody is let in after one has ended")
	}
	if _, ok := o.begin(); ok {
		t.Error("one too many is let in after one has ended")
	}
}
