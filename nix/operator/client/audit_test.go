package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/auditview"
	"github.com/florete/florete/providers/server"
)

// TestAudit: the log of a provider is read whole, page by page or over ssh, from a time on.
func TestAudit(t *testing.T) {
	since := auditview.Moment{Time: time.Date(2026, 7, 14, 8, 30, 0, 123456789, time.UTC)}
	var rows []json.RawMessage
	for i := range 5 {
		text, err := json.Marshal(server.Row{Time: since.Add(time.Duration(i+1) * time.Second), Need: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, text)
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := 0
		if after := r.URL.Query().Get("after"); after != "" {
			fmt.Sscan(after, &from)
		}
		if r.URL.Path != "/v1/audit" || r.URL.Query().Get("since") != since.String() {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		page := map[string]any{"rows": rows[from:min(from+2, len(rows))], "next": ""}
		if from+2 < len(rows) {
			page["next"] = fmt.Sprint(from + 2)
		}
		_ = json.NewEncoder(w).Encode(page)
	}))
	defer api.Close()
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n[ \"$*\" = 'root@forge flor-provider audit --json --after %s' ] && cat <<'ROWS'\n", since.String())
	for _, r := range rows {
		script += string(r) + "\n"
	}
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte(script+"ROWS\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for name, p := range map[string]*Provider{
		"forwarder": New("forge", api.URL, api.Client()),
		"ssh":       newOverSSH(RootOf(compile.Topology{}, "forge")),
	} {
		got := ""
		for r, err := range p.Audit(t.Context(), since) {
			if err != nil || r.At != "forge" {
				t.Fatalf("%s: %+v, %v", name, r, err)
			}
			got += " " + r.Need
		}
		if got != " 0 1 2 3 4" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestAuditOfSome: what can be read of several providers is, and that none answers is an error.
func TestAuditOfSome(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"rows":[{"need":"one"}],"next":""}`))
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
