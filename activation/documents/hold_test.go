package documents

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit"
)

// TestHold checks that held documents come in force by a change of the operator or at the end of
// the hold, whatever the clock shows.
func TestHold(t *testing.T) {
	o := newOrigins(t)
	o.deploy(kit.Document(5, o.version("a")))
	o.open()
	hold := func(d time.Duration, began bool) {
		t.Helper()
		if got, err := Hold(o.layout, d); got != began || err != nil {
			t.Fatal(got, err)
		}
	}
	next := kit.Signed(6, o.version("b"), o.Signing)
	hold(time.Hour, true)
	hold(time.Minute, false)
	o.wantRefused(o.accept(next), hostapi.Transient, CodeHeld.Name, "an operator has it wait until ")
	o.wantAccepted(o.accept(kit.Signed(5, o.version("a"), o.Signing)))
	o.want(5, "a")
	o.begin(next)
	o.want(6, "b")
	if _, err := Undo(o.layout, nil); err != nil {
		t.Fatal(err)
	}
	o.open()
	last := kit.Signed(7, o.version("c"), o.Signing)
	o.wantRefused(o.accept(last), hostapi.Transient, CodeHeld.Name, "")
	hold(0, false)
	o.wantAccepted(o.accept(last))
	o.want(7, "c")
	for _, until := range []time.Time{time.Now().Add(-time.Second), time.Now().Add(48 * time.Hour)} {
		hold(time.Hour, true)
		if err := os.WriteFile(o.layout.HoldFile(), fmt.Appendf(nil, `{"until":%d}`, until.Unix()), 0o644); err != nil {
			t.Fatal(err)
		}
		if h := readHold(o.layout, time.Now()); !h.Until.IsZero() {
			t.Errorf("held until %s", h.Until)
		}
	}
}
