package activation

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// TestChangeBesideActivation checks that activation uses documents that flor sync puts in force
// within a minute, and likewise the previous ones when they are reverted, which then stay. Nothing
// newer comes while the change is pending.
func TestChangeBesideActivation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		stop := h.run()
		time.Sleep(time.Second)
		next := h.manifest
		next.Needs = append(append([]document.Need{}, next.Needs...), kit.OIDCNeed("oidc-late", Service, "forge"))
		store, _, err := documents.Open(h.config.State, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		offer, e := store.Verify(hostapi.Artifact{Documents: []hostapi.SignedDocument{kit.Signed(2, next, h.Signing)}})
		if e != nil {
			t.Fatal(e)
		}
		if _, err := store.Begin(t.Context(), offer, hostdir.Change{ID: "x", Deadline: unixtime.Of(time.Now().Add(time.Hour))}, func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		h.wantLine("documents: put in force by flor sync, or gone back: manifest of ursula, serial 2, 4 needs")
		if s := h.state("oidc-late"); s.State != hostdir.NeedFulfilled {
			t.Errorf("oidc-late: %+v", s)
		}
		h.publish(3, h.manifest)
		time.Sleep(time.Hour)
		h.wantLine("transient (change-pending): document from the network: change x, manifest 2 is pending")
		h.publish(2, next)
		if c, err := documents.Undo(h.config.State, nil); err != nil || c == nil {
			t.Fatal(c, err)
		}
		time.Sleep(time.Hour)
		d, err := h.config.State.Manifest()
		if err != nil || d.Envelope.Serial != 1 {
			t.Errorf("serial %d is in force: %v", d.Envelope.Serial, err)
		}
		if s := stop(); len(s.Needs) != 3 || s.Exit() != event.ExitFulfilled {
			t.Errorf("%+v\n%s", s, h.lines())
		}
	})
}
