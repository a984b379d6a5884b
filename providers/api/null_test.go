package api_test

import (
	"encoding/json"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/tests/kit"
)

// TestNoNull: an identity file of one identity has no documents, but the revocation list where the
// cluster has one. What is written is read again, null is not.
func TestNoNull(t *testing.T) {
	f := api.IdentityFile{Format: document.NewestFormat, SVIDs: []api.IdentitySVID{{ID: kit.ID("vertex/gate")}}}
	f.Artifact.Revocations = &trust.SignedRevocations{}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var again api.IdentityFile
	if err := strictjson.Decode(b, &again); err != nil || again.Artifact.Revocations == nil || !again.Artifact.Unchanged() {
		t.Errorf("%s: %+v, %v", b, again, err)
	}
}
