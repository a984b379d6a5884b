package hostapi_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
)

// TestPage checks that the protocol's documentation page lists all endpoints and headers, and that
// its example of a request is valid.
func TestPage(t *testing.T) {
	const path = "../../docs/reference/host-api.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for _, text := range []string{
		"POST " + hostapi.Path("KIND"), "POST " + hostapi.PathNonce, "POST " + hostapi.PathJoin, "POST " + hostapi.PathReport,
		"GET " + hostapi.PathArtifact + "NODE", "GET " + hostapi.PathWatch, "GET " + hostapi.PathCRL("cert"), "GET " + hostapi.PathCheckpoint("KIND"),
		hostapi.HeaderKey, hostapi.HeaderDevice, hostapi.HeaderHas + ":", hostapi.HeaderRevision, hostapi.HeaderRevocations + ":",
		hostapi.DeviceNamespace, hostapi.ProofNamespace, hostapi.JoinNamespace,
	} {
		if !strings.Contains(page, text) {
			t.Errorf("%s: no %q", path, text)
		}
	}
	sent := regexp.MustCompile(`(?s)POST /oidc/request\n.*?\n\n(\{.*?\n)` + "```").FindStringSubmatch(page)
	if sent == nil {
		t.Fatalf("%s: no example of a request", path)
	}
	var r hostapi.Request
	if err := strictjson.Decode([]byte(sent[1]), &r); err != nil {
		t.Errorf("%s: the example: %v", path, err)
	}
}
