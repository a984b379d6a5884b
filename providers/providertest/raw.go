package providertest

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"testing"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
)

// Post sends bytes as they are, which hostapi.Client would not, and returns the status
// and the refusal, nil when there is none. svid may be nil.
func (e *Env) Post(t *testing.T, svid *tls.Certificate, path, key string, body []byte) (int, error) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	if svid != nil {
		config.Certificates = []tls.Certificate{*svid}
	}
	tr := &http.Transport{TLSClientConfig: config, DialContext: e.Dial, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://provider"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(hostapi.HeaderKey, key)
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.StatusCode, nil
	}
	var refusal hostapi.Error
	if err := strictjson.Decode(b, &refusal); err != nil {
		t.Fatalf("status %d with %q: %v", resp.StatusCode, b, err)
	}
	return resp.StatusCode, &refusal
}
