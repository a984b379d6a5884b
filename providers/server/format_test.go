package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit/providertest"
)

// TestNewerFormat checks that a host waits, and an audit row is written, if only a newer provider
// can read the request.
func TestNewerFormat(t *testing.T) {
	e, _ := start(t, new(echo))
	send := func(path, body string, f document.Format) error {
		t.Helper()
		c := e.Connect(t, ursula, e.Issue(ursula, time.Hour))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://provider"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(document.HeaderFormat, f.String())
		return c.Send(req)
	}
	newer := document.Format{Major: document.NewestFormat.Major, Minor: document.NewestFormat.Minor + 1}
	const field = `{"need":"a","serial":1,"generation":1,"body":{},"new":1}`
	for _, c := range []struct{ path, body, code string }{
		{hostapi.Path("oidc"), field, hostapi.CodeMalformed.Name},
		{"/oidc/new", "{}", hostapi.CodeUnknownMethod.Name},
	} {
		providertest.WantError(t, send(c.path, c.body, document.NewestFormat), hostapi.Code{Name: c.code, Class: hostapi.Invalid})
		err := send(c.path, c.body, newer)
		providertest.WantError(t, err, hostapi.CodeNewerFormat)
		for _, part := range []string{newer.String(), document.NewestFormat.String(), "upgrade"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v, want %q in it", err, part)
			}
		}
	}
	for i, row := range e.Audit() {
		if want := i%2 == 1; (row.Code == hostapi.CodeNewerFormat.Name) != want || row.Caller != ursula.String() {
			t.Errorf("audit row %d: %+v", i, row)
		}
	}
}
