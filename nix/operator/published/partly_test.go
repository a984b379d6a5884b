package published

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/tests/kit"
)

// taker returns a provider that accepts a publication, or fails with a status.
func taker(t *testing.T, status int) *client.Provider {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(api.Close)
	return client.New("taker", api.URL, api.Client())
}

// TestPartly checks that a publication that only some providers accepted ends with ErrPartly and
// counts as served, and that one that none accepted is an error and does not count. Providers with
// a common store have the same publication.
func TestPartly(t *testing.T) {
	down, up := taker(t, http.StatusServiceUnavailable), taker(t, http.StatusOK)
	shares := archive.SignedTree{"forge": {kit.Document(7, document.Policy{Cluster: "demo", Host: "forge", TrustDomain: kit.Domain, Provider: map[string]document.Listening{}, Kinds: map[string]json.RawMessage{}, Store: &document.SharedStore{Endpoints: []string{"https://192.0.2.1:2379"}, Replicas: map[string][]document.Device{}}})}}
	for name, c := range map[string]struct {
		providers client.Providers
		tree      archive.SignedTree
		partly    bool
		fails     bool
	}{
		"all":    {client.Providers{up, up}, archive.SignedTree{}, false, false},
		"some":   {client.Providers{down, up}, archive.SignedTree{}, true, false},
		"shared": {client.Providers{down, up}, shares, false, false},
		"none":   {client.Providers{down, down}, archive.SignedTree{}, false, true},
	} {
		r, err := openRecord(filepath.Join(t.TempDir(), "key.signed"), "demo")
		if err != nil {
			t.Fatal(err)
		}
		err = Cluster{Providers: c.providers, Console: terminal.Console{Out: io.Discard}}.serve(t.Context(), r, version{Serial: 7}, client.Importing{}, c.tree)
		if errors.Is(err, ErrPartly) != c.partly || (err != nil) != (c.partly || c.fails) {
			t.Errorf("%s: %v", name, err)
		}
		if served := r.served().Serial == 7; served == c.fails {
			t.Errorf("%s: served %v", name, served)
		}
	}
}
