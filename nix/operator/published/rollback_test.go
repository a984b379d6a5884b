package published

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/tests/kit"
)

// TestRollbackRoots checks that a version is not published again if it lacks a root to which
// certificates of a host lead, unless that host is named.
func TestRollbackRoots(t *testing.T) {
	key, former, next, now := kit.SigningKey("demo-1"), kit.NewCA(), kit.NewCA(), time.Now()
	var trees []archive.SignedTree // the newest first
	var versions control.Versions
	for i, roots := range [][]string{{former.RootPEM(), next.RootPEM()}, {former.RootPEM()}} {
		m := document.Manifest{Cluster: "demo", Host: "a", TrustDomain: kit.Domain, Identity: document.Identity{ID: kit.ID("node/a")},
			Providers: map[string]map[string]document.Provider{}, Trust: document.Trust{Roots: roots, SigningKeys: []string{key.ToPublicKey().String()}}}
		tree, err := archive.Sign(map[string][]document.Document{"a": {kit.Document(now.Unix()-int64(100+i), m)}}, key, now)
		if err != nil {
			t.Fatal(err)
		}
		trees, versions.Versions = append(trees, tree), append(versions.Versions, archive.Version{Head: tree.Head()})
	}
	report := hostreport.Report{Format: document.NewestFormat, Sent: unixtime.Of(now), Roots: &hostreport.Roots{Anchors: next.Roots().Fingerprints()}}
	imports := 0
	mux := http.NewServeMux()
	answer := func(pattern string, what any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(what) })
	}
	answer("GET /v1/versions", versions)
	answer("GET /v1/revocations", archive.Revocations{})
	answer("POST /v1/revocations", archive.Revocations{})
	answer("GET /v1/hosts", control.Hosts{Hosts: []control.Host{{Host: "a", Kept: hostreport.Kept{Sequence: 1, Report: kit.JSON(report), Received: unixtime.Of(now)}}}})
	for i, v := range versions.Versions {
		mux.HandleFunc(fmt.Sprintf("GET /v1/versions/%d", v.Serial), func(w http.ResponseWriter, _ *http.Request) { _ = trees[i].Encode(w) })
	}
	mux.HandleFunc("POST /v1/rollback/{serial}", func(w http.ResponseWriter, _ *http.Request) {
		imports++
		_ = json.NewEncoder(w).Encode(control.Published{})
	})
	api := httptest.NewServer(mux)
	defer api.Close()
	c := Cluster{Topology: compile.Topology{Name: "demo", Hosts: map[string]compile.Host{"a": {}}}, Providers: client.Providers{client.New("p", api.URL, api.Client())}, Console: terminal.Console{Out: io.Discard, Err: io.Discard}}
	c.Topology.Trust.SigningKeys = []string{key.ToPublicKey().String()}
	back := func(without ...string) error {
		return c.Rollback(t.Context(), Rollback{Serial: versions.Versions[1].Serial, Key: Key{SecretKey: key, record: filepath.Join(t.TempDir(), "signed")}, Digest: trees[1].Digest(), Without: without})
	}
	const want = "to which certificates of a lead"
	if err := back(); err == nil || !strings.Contains(err.Error(), want) || imports != 0 {
		t.Errorf("%v, after %d publications, want …%s… and none", err, imports, want)
	}
	if err := back("a"); err != nil || imports != 1 {
		t.Errorf("without a: %v, after %d publications", err, imports)
	}
}
