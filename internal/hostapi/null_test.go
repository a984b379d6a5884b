package hostapi_test

import (
	"encoding/json"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/tests/kit"
)

// TestNoNull checks that an identity file that contains a revocation list but no documents can be
// read again after it was written. Readers refuse null in place of an empty list of documents.
func TestNoNull(t *testing.T) {
	f := hostapi.IdentityFile{Format: document.NewestFormat, SVIDs: []hostapi.IdentitySVID{{ID: kit.ID("vertex/gate")}}}
	f.Artifact.Revocations = &trust.SignedRevocations{}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var again hostapi.IdentityFile
	if err := strictjson.Decode(b, &again); err != nil || again.Artifact.Revocations == nil || !again.Artifact.Unchanged() {
		t.Errorf("%s: %+v, %v", b, again, err)
	}
}
