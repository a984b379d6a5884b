package tls

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCALeads checks that a CA whose directory leads to an address that only this host can reach
// gets no request there.
func TestCALeads(t *testing.T) {
	const inside = "https://127.0.0.2:443"
	ca := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{"newNonce": inside, "newAccount": inside, "newOrder": inside})
	}))
	defer ca.Close()
	f := newFixture(t, nil, settings{})
	f.Roots = filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(f.Roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.account(&Policy{settings: settings{Directory: ca.URL}}); err == nil || !strings.Contains(err.Error(), "no address for a server of others") {
		t.Error(err)
	}
}
