package main

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store/sqlite"
)

// TestAuditFilters checks that matching rows of the logs of all kinds are printed in the order of
// time, as text and as JSON.
func TestAuditFilters(t *testing.T) {
	dir := t.TempDir()
	settings := filepath.Join(dir, "provider.hujson")
	if err := os.WriteFile(settings, []byte(`{"activation":"activation","state":"."}`), 0o600); err != nil {
		t.Fatal(err)
	}
	audits := map[string]*server.Audit{}
	for _, kind := range []string{"cert", "config", "oidc"} {
		if err := os.Mkdir(filepath.Join(dir, kind), 0o700); err != nil {
			t.Fatal(err)
		}
		db, err := sqlite.Open(filepath.Join(dir, kind, "state.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		audits[kind] = server.NewAudit(db, slog.New(slog.DiscardHandler))
	}
	write := func(ago time.Duration, caller, kind, need string, refusal *hostapi.Error) {
		r := server.Row{Time: time.Now().Add(-ago).UTC(), From: "192.0.2.1:1", Caller: caller, Kind: kind, Need: need, Outcome: server.Granted}
		if refusal != nil {
			r = r.Refuse(refusal)
		}
		if err := audits[kind].Write(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	write(time.Hour, "spiffe://demo.flor/node/ursula", "cert", "first", nil)
	write(20*time.Minute, "spiffe://demo.flor/node/ursula", "oidc", "second", hostapi.Errorf(hostapi.CodeMismatch, "no"))
	write(time.Second, "spiffe://demo.flor/node/raishan", "cert", "third", nil)
	// More than are read at once.
	for range auditPage {
		write(2*time.Hour, "spiffe://demo.flor/node/old", "config", "before", nil)
	}
	for flags, want := range map[string]string{
		"--after 30m":                            "second third",
		"--caller node/ursula":                   "first second",
		"--caller spiffe://demo.flor/node/old x": "", // too many arguments
		"--caller ursula --kind cert":            "first",
		"--kind cert":                            "first third",
		"--outcome denied":                       "second",
		"--outcome denied --json":                "second",
		"--after 30m --kind cert --json":         "third",
		"--outcome invalid":                      "",
		"--before 30m --kind cert":               "first",
		"--after 90m --before 30m":               "first",
		"--limit 2":                              "second third",
		"--limit 2 --caller node/ursula":         "first second",
		"--limit 1 --before 10m --json":          "second",
		"--limit 2 --after 90m":                  "first second",
		"--limit 9 --after 90m":                  "first second third",
		"--after 2020-01-01T00:00:00Z --limit 1": "before",
		"--before 2020-01-01T00:00:00.5Z":        "",
	} {
		out, err := exec.Command("flor-provider", append([]string{"audit", "--settings", settings}, strings.Fields(flags)...)...).Output()
		var got []string
		for line := range strings.Lines(string(out)) {
			for _, need := range []string{"first", "second", "third", "before"} {
				if strings.Contains(line, need) {
					got = append(got, need)
				}
			}
			if strings.HasPrefix(line, "{") != strings.Contains(flags, "--json") {
				t.Errorf("%s: %s", flags, line)
			}
		}
		if strings.Join(got, " ") != want || (err != nil) != strings.HasSuffix(flags, " x") {
			t.Errorf("%s: got %q, %v, want %q", flags, got, err, want)
		}
	}
}
