package main

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/tlog"
	"github.com/florete/florete/tests/kit"
)

// verified waits until the log of the one process has all of its rows, and is right.
func verified(t *testing.T, settings string) {
	t.Helper()
	kit.Succeeds(t, "the log to be verified", func() error {
		var v tlog.Verdict
		out, _ := exec.Command("flor-provider", "audit", "--verify", "--json", "--settings", settings).CombinedOutput()
		if json.Unmarshal(out, &v) == nil && len(v.Faults) == 0 && int(v.Rows) == len(audit(t, settings)) {
			return nil
		}
		return fmt.Errorf("%s, want a log of %d rows", out, len(audit(t, settings)))
	})
}

// edit changes a row in the file of a store.
func edit(t *testing.T, file string, at time.Time) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	key := fmt.Sprintf("%s%016x", server.AuditPrefix, at.UnixNano())
	r, err := db.Exec("UPDATE kv SET value = replace(value, 'cert', 'tree') WHERE key > ? AND key < ?", []byte(key), []byte(key+"~"))
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := r.RowsAffected(); n != 1 {
		t.Fatalf("%d rows were edited", n)
	}
}

// proven checks that a row is proven, and one that was never decided is not.
func proven(t *testing.T, settings string, row server.Row) {
	t.Helper()
	out, err := exec.Command("flor-provider", "audit", "--proof", row.Time.Format(time.RFC3339Nano), "--settings", settings).CombinedOutput()
	if err != nil || !strings.Contains(string(out), row.Time.Format(time.RFC3339Nano)) || !strings.Contains(string(out), "/cert/drhorrible\n") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = exec.Command("flor-provider", "audit", "--proof", "2020-01-01T00:00:00Z", "--settings", settings).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no such row in the audit log") {
		t.Errorf("%v: %s", err, out)
	}
}

// followed checks that the row of a decision is printed when it is appended.
func followed(t *testing.T, settings string, decide func()) {
	t.Helper()
	follow := exec.Command("flor-provider", "audit", "--follow", "--json", "--settings", settings)
	lines, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	defer follow.Wait()
	defer follow.Process.Kill()
	in, first := bufio.NewScanner(lines), make(chan string, 1)
	go func() {
		in.Scan()
		first <- in.Text()
	}()
	kit.Eventually(t, "a row to be followed", func() bool { // it follows what is decided once it has begun
		decide()
		return len(first) > 0
	})
	if row := <-first; !strings.Contains(row, `"replayed":true`) {
		t.Errorf("followed %q", row)
	}
}
