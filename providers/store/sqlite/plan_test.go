package sqlite

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrefixIsARange checks that listing a prefix does not read the keys after it.
func TestPrefixIsARange(t *testing.T) {
	for prefix, want := range map[string]string{"audit/": "(key>? AND key<?)", "\xff": "(key>?)"} {
		query, args := within([]byte(prefix), prefix)
		if plan := explain(t, query, args...); len(plan) == 0 || !strings.Contains(plan[0], want) {
			t.Errorf("prefix %q: %q, want %s", prefix, plan, want)
		}
	}
}

// TestExpiryReadsNoWholeTable checks that the cost of a change does not grow with the store, which
// contains the audit log.
func TestExpiryReadsNoWholeTable(t *testing.T) {
	for _, step := range explain(t, attached("expires <= ?"), 0) {
		if strings.HasPrefix(step, "SCAN") {
			t.Errorf("reads a whole table: %q", step)
		}
	}
}

// explain is SQLite's plan of a query.
func explain(t *testing.T, query string, args ...any) []string {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "state.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rows, err := s.read.Query("EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := collect(rows, func(r *sql.Rows) (detail string, err error) {
		var id, parent, unused int
		err = r.Scan(&id, &parent, &unused, &detail)
		return detail, err
	})
	if err != nil || len(plan) == 0 {
		t.Fatalf("plan %q, %v", plan, err)
	}
	return plan
}
