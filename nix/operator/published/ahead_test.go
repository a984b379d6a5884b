package published

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
)

// TestAhead checks that an operator does not continue the providers' revocation list if a host
// reports a newer one, which revokes more, and that with Force the next list is newer than both.
func TestAhead(t *testing.T) {
	key := kit.SigningKey("demo-1")
	o := startOffering(t, key)
	c := Cluster{Topology: compile.Topology{Name: "demo"}, Console: terminal.Console{Out: io.Discard, Err: io.Discard}}
	c.Topology.Trust.SigningKeys = []string{key.ToPublicKey().String()}
	c.Providers = client.Providers{client.New("forge", o.URL, http.DefaultClient)}
	how := Revising{Key: Key{SecretKey: key, record: filepath.Join(t.TempDir(), "signed")}, Valid: revocation.Lifetime}
	ursula := revocation.Target{ID: kit.ID("node/ursula")}
	if err := c.Revoke(t.Context(), how, ursula); err != nil {
		t.Fatal(err)
	}
	kept := hostreport.Kept{Sequence: 1, Received: unixtime.Of(time.Now()), Report: kit.JSON(hostreport.Report{
		Format: document.NewestFormat, Revocations: &trust.ReportedRevocations{Number: 9},
	})}
	if _, err := o.Store.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(server.ReportPrefix+"a", kit.JSON(kept))}}); err != nil {
		t.Fatal(err)
	}
	err := c.Reinstate(t.Context(), how, ursula)
	if err == nil || !strings.Contains(err.Error(), "host a reports revocation list 9, and providers have 1") || o.list(t).Number != 1 {
		t.Errorf("%v, list %d", err, o.list(t).Number)
	}
	how.Force = true
	if err := c.Reinstate(t.Context(), how, ursula); err != nil {
		t.Fatal(err)
	}
	if list := o.list(t); list.Number != 10 || list.Former != "" {
		t.Errorf("list %d follows %q, want 10, which follows none", list.Number, list.Former)
	}
}
