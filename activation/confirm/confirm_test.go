package confirm

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/unixtime"
)

func TestConfirmed(t *testing.T) {
	h := newHost(t)
	c := h.begin()
	h.want(2)
	if p := h.pending(); p == nil || p.ID != c.ID || p.Deadline.Sub(p.Begun.Time) != longest {
		t.Fatalf("pending: %+v", p)
	}
	if err := h.ConfirmHealthy(c.ID); err != nil {
		t.Fatal(err)
	}
	h.supervise()
	h.want(2)
	if u := h.undone(); u != nil {
		t.Errorf("undone: %s", u)
	}
	h.clean()
}

// TestGoesBack checks that reverted documents do not come in force again, neither automatically nor
// on request, and that newer ones do.
func TestGoesBack(t *testing.T) {
	h := newHost(t)
	c := h.begin()
	h.supervise()
	h.want(1)
	if u := h.undone(); u == nil || u.ID != c.ID || u.Documents[0].Serial != 2 {
		t.Fatalf("undone: %+v", u)
	}
	if e := h.poll(2); e != nil {
		t.Fatal(e)
	}
	h.want(1)
	change, err := h.Fetch(t.Context())
	if err != nil || change.Changed {
		t.Fatalf("changed: %v, %v", change.Changed, err)
	}
	if err := Confirm(h.State, c.ID); err == nil || !strings.Contains(err.Error(), "has gone back") {
		t.Error(err)
	}
	if e := h.poll(3); e != nil {
		t.Fatal(e)
	}
	h.want(3)
	if u := h.undone(); u != nil {
		t.Errorf("undone: %s, though newer documents are in force", u)
	}
}

// TestOneAtATime checks that no change begins while another is pending, and that activation puts
// nothing in force meanwhile.
func TestOneAtATime(t *testing.T) {
	h := newHost(t)
	c := h.begin()
	if e := h.poll(3); e == nil || e.Kind != hostapi.Transient || e.Code != documents.CodePending.Name || !strings.Contains(e.Message, c.ID) {
		t.Errorf("%v", e)
	}
	if e := h.poll(2); e != nil {
		t.Errorf("what is in force: %v", e)
	}
	h.publish(3)
	if second, err := h.sync(); second != nil || err == nil || !strings.Contains(err.Error(), "change "+c.ID+", manifest 2 is pending") {
		t.Errorf("%v, %v", second, err)
	}
	h.want(2)
	if err := h.ConfirmHealthy(c.ID); err != nil {
		t.Fatal(err)
	}
	h.begin()
	h.want(3)
	h.supervise()
	h.want(2)
}

// TestNotArmed checks that no change begins without a supervisor that can revert it.
func TestNotArmed(t *testing.T) {
	h := newHost(t)
	var before error
	h.Arm = func(context.Context) error {
		h.want(1)
		if h.pending() == nil {
			before = errors.New("not on disk before it is armed")
		}
		return errors.New("no such unit")
	}
	if c, err := h.sync(); c != nil || err == nil || before != nil {
		t.Fatalf("%v, %v, %v", c, err, before)
	}
	h.want(1)
	if c := h.pending(); c != nil {
		t.Errorf("%s is pending", c)
	}
}

func TestConfirmRefuses(t *testing.T) {
	h := newHost(t)
	wantError := func(text, id string) {
		t.Helper()
		if err := Confirm(h.State, id); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	wantError(`change "x" is not pending, and no other is: flor status`, "x")
	c := h.begin()
	wantError(`change "x" is not pending, want "`+c.ID+`"`, "x")
	h.expire()
	wantError("its time is over", c.ID)
	if h.pending() == nil {
		t.Error("nothing is pending any more")
	}
}

func TestTimeout(t *testing.T) {
	h := newHost(t)
	change, err := h.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []time.Duration{0, -time.Second, 25 * time.Hour} {
		if c, err := h.Begin(t.Context(), change, d); c != nil || err == nil || !strings.Contains(err.Error(), "want between 1s and 24h") {
			t.Errorf("%s: %v, %v", d, c, err)
		}
	}
}

// TestHealthy checks that a host is healthy once it has fulfilled the needs of the new documents
// and reaches their provider.
func TestHealthy(t *testing.T) {
	h := newHost(t)
	change, err := h.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Healthy(t.Context(), change); err != nil {
		t.Error(err)
	}
	other := change
	other.Set.Manifest.Needs = append(other.Set.Manifest.Needs[:0:0], other.Set.Manifest.Needs...)
	other.Set.Manifest.Needs[1].Generation++
	if err := h.Healthy(t.Context(), other); err == nil || !strings.Contains(err.Error(), "need oidc-outline is not fulfilled") {
		t.Error(err)
	}
	h.forge.Stop()
	if err := h.Healthy(t.Context(), change); err == nil || !strings.Contains(err.Error(), "documents from provider forge") {
		t.Error(err)
	}
}

// TestGoesBackWithoutRecord checks that an unreadable record of the documents from the network
// stops activation, but not the return to the previous documents.
func TestGoesBackWithoutRecord(t *testing.T) {
	h := newHost(t)
	h.begin()
	if err := os.WriteFile(h.State.State(), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.expire()
	if _, err := documents.Undo(h.State, nil); err == nil {
		t.Error("no error")
	}
	h.want(1)
	if h.pending() != nil {
		t.Error("it is still pending")
	}
}

// TestGoesBackUnarmed checks that documents are reverted although the disk does not allow rearming
// after a reboot.
func TestGoesBackUnarmed(t *testing.T) {
	h := newHost(t)
	c := h.begin()
	c.Boot, c.Deadline, c.Begun = "before", unixtime.Unix(2), unixtime.Unix(1)
	if err := documents.Rearm(h.State, c); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(h.State.ChangeFile()+".new/full", 0o755); err != nil {
		t.Fatal(err)
	}
	h.supervise()
	h.want(1)
}
