package attacks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// withheld returns what the forwarder of a host says about documents that are withheld from it, as
// flor status prints it. It is nil if there are none.
func (c *cluster) withheld(t *testing.T, h *local.Host) error {
	t.Helper()
	r, _, err := status.Fetch(t.Context(), h.Socket())
	if err != nil {
		t.Fatal(err)
	}
	if r.Withheld == nil {
		return nil
	}
	return errors.New(r.Withheld.String())
}

// TestWithheld attacks hosts with a config provider that was broken into, and that serves documents
// which an operator replaced. An attacker cannot forge documents or lists, and serves those that
// operators have signed. Each host that gets the newest list must say that its documents are old.
func TestWithheld(t *testing.T) {
	c := start(t)
	kit.Succeeds(t, "no alarm before the attack", func() error { return c.withheld(t, c.b) })
	envelope := func(h *local.Host) document.Envelope {
		d, err := document.Read(filepath.Join(h.Layout().Documents(), "current"), document.DocManifest)
		if err != nil {
			t.Fatal(err)
		}
		return d.Envelope
	}
	now := envelope(c.b)
	// serving has the provider offer a list that names a version which it does not serve. The host
	// has some seconds to get that version.
	serving := func(named trust.NamedDocuments) func(*testing.T, *cluster) error {
		return func(t *testing.T, c *cluster) error {
			due := time.Now().Add(3 * time.Second)
			named.Due = unixtime.Of(due)
			if err := c.offer(t.Context(), c.revoke(t, c.offered(t), func(l *trust.Revocations) { l.Documents = &named })); err != nil {
				t.Fatal(err)
			}
			list, err := c.offered(t).Open()
			if err != nil {
				t.Fatal(err)
			}
			c.waitList(t, c.b, list.Number)
			if err := c.withheld(t, c.b); err != nil && time.Now().Before(due) && strings.Contains(err.Error(), fmt.Sprintf("list %d ", list.Number)) {
				t.Errorf("before the version is due: %v", err)
			}
			kit.Eventually(t, "the alarm", func() bool {
				err = c.withheld(t, c.b)
				return err != nil && strings.Contains(err.Error(), fmt.Sprintf("list %d", list.Number))
			})
			return err
		}
	}
	defer func() { // the next version is served, and ends the alarm
		if err := os.WriteFile(c.Path("cluster", "note"), []byte("the version that ends the attack\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := c.Commit(t.Context(), time.Now().Add(-time.Second), "served", "served"); err != nil {
			t.Fatal(err)
		}
		if err := c.Publish(t.Context(), c.p, "served"); err != nil {
			t.Fatal(err)
		}
		kit.Succeeds(t, "no alarm once the newest documents are served", func() error { return c.withheld(t, c.b) })
	}()
	run(t, []attack{
		{
			name:    "a provider serves another version with the serial of the newest one",
			try:     serving(trust.NamedDocuments{Serial: now.Serial, Rev: "0000000000000000000000000000000000000000"}),
			refusal: "names another version with this serial",
		},
		{
			name:    "a provider makes hosts go back although no rollout stopped",
			try:     serving(trust.NamedDocuments{Serial: now.Serial - 1, Back: now.Serial}),
			refusal: fmt.Sprintf("its manifest of serial %d is from before serial %d", now.Serial, now.Serial-1),
		},
		{
			name:    "a provider serves old documents quietly",
			try:     serving(trust.NamedDocuments{Serial: now.Serial + 1}),
			refusal: fmt.Sprintf("its manifest has serial %d, and revocation list", now.Serial),
		},
	})
}
