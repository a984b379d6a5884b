package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/auditlog"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/tlog"
)

// TestAudit: the log of a provider is read whole, page by page or over ssh, from a time on.
func TestAudit(t *testing.T) {
	since := auditlog.Moment{Time: time.Date(2026, 7, 14, 8, 30, 0, 123456789, time.UTC)}
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
	for name, p := range map[string]provider{
		"forwarder": overForwarder{"forge", api.URL, &http.Client{}},
		"ssh":       overSSH{"forge", compile.Topology{}},
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
	there, gone := overForwarder{"forge", up.URL, &http.Client{}}, overForwarder{"spare", down.URL, &http.Client{}}
	for _, c := range []struct {
		providers []provider
		rows      int
		fails     bool
	}{
		{[]provider{gone, there}, 1, false},
		{[]provider{there, there}, 2, false},
		{[]provider{gone, gone}, 0, true},
	} {
		log, end := auditOf(t.Context(), c.providers, auditlog.Moment{})
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

// TestUnread: what is not read is named, of the kinds that have hosts.
func TestUnread(t *testing.T) {
	forge := compile.Provider{Hosts: []string{"forge"}}
	topology := compile.Topology{Providers: map[string]compile.Provider{"oidc": forge, "config": forge, "cert": forge, "tls": {}}}
	for want, p := range map[string]provider{"cert oidc": overForwarder{}, "": overSSH{}} {
		if got := strings.Join(published{topology, []provider{p}}.unread(), " "); got != want {
			t.Errorf("%T: %q, want %q", p, got, want)
		}
	}
}

// TestAuditLogs: what one provider lacks keeps nobody from the logs of the others.
func TestAuditLogs(t *testing.T) {
	bin := t.TempDir()
	script := `#!/bin/sh
case "$*" in
"root@ash "*"--follow=true") echo row of ash; while [ ! -e ` + bin + `/done ]; do sleep 0.01; done ;;
"root@elm "*"--follow=true") echo row of elm; touch ` + bin + `/done ;;
"root@elm "*) echo found at elm ;;
*) echo "` + tlog.ErrNoRow.Error() + `" >&2; exit 1 ;;
esac
`
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	providers := []provider{overSSH{"ash", compile.Topology{}}, overSSH{"elm", compile.Topology{}}}
	for _, c := range []struct {
		flag  string
		value auditlog.Mode
		want  []string
		fails bool
	}{
		{"--follow", auditlog.Mode{Follow: true}, []string{"row of ash", "row of elm"}, false},
		{"--proof=x", auditlog.Mode{Proof: "x"}, []string{"found at elm"}, false},
		{"--verify", auditlog.Mode{Verify: true}, []string{"found at elm"}, true},
	} {
		cmd := newAuditCmd()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetContext(t.Context())
		if err := cmd.ParseFlags([]string{c.flag}); err != nil {
			t.Fatal(err)
		}
		err := auditLogs(cmd, providers, &c.value, &auditlog.Filter{}, false)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", c.flag, err)
		}
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.flag, got, c.want)
		}
	}
}
