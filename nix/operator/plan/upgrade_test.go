package plan

import (
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/tests/kit"
)

// TestUpgrade checks, with a made-up later format, that a host is named whose documents need a
// newer format than those in force.
func TestUpgrade(t *testing.T) {
	of := func(minor int) documents {
		e := document.Envelope{Schema: document.EnvelopeSchema, Format: document.Format{Major: 1, Minor: minor}, Host: "ursula", Kind: document.DocManifest}
		return documents{document.DocManifest: compile.Raw{Envelope: string(kit.JSON(e)), Body: "{}"}}
	}
	for _, c := range []struct {
		was, is documents
		want    string
	}{
		{of(0), of(0), ""}, {of(0), of(1), "1.1"}, {of(1), of(1), ""}, {of(1), of(0), ""}, {nil, of(2), "1.2"},
	} {
		h := Host{Name: "ursula"}
		if err := h.upgrade(c.was, c.is); err != nil || h.Format != c.want {
			t.Errorf("%v to %v: %q, %v, want %q", c.was, c.is, h.Format, err, c.want)
		}
	}
	if got := new(page).changes(Host{Name: "ursula", Change: "changed", Format: "1.1"}); !strings.Contains(got, "needs programs that understand format 1.1") {
		t.Error(got)
	}
}
