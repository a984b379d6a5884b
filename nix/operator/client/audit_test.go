package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/florete/florete/providers/auditview"
)

// TestAuditOfSome checks that the logs of those providers that answer are read, and that it is an
// error if none does.
func TestAuditOfSome(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{"kinds":["config"]}`
		if r.URL.Path == "/v1/audit" {
			answer = `{"rows":[{"need":"one"}],"next":""}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer up.Close()
	down := httptest.NewServer(nil)
	down.Close()
	there, gone := New("forge", up.URL, &http.Client{}), New("spare", down.URL, &http.Client{})
	for _, c := range []struct {
		providers Providers
		rows      int
		fails     bool
	}{
		{Providers{gone, there}, 1, false},
		{Providers{there, there}, 2, false},
		{Providers{gone, gone}, 0, true},
	} {
		log, end := c.providers.Audit(t.Context(), auditview.Moment{})
		rows := 0
		for r, err := range log {
			if err != nil || r.Need != "one" {
				t.Errorf("%+v, %v", r, err)
			}
			rows++
		}
		if err := end(); rows != c.rows || (err != nil) != c.fails {
			t.Errorf("%d rows, %v, want %d", rows, err, c.rows)
		}
	}
}
