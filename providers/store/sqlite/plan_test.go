package sqlite

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
)

// What each change costs does not grow with the store, which keeps the audit log.
func TestExpiryReadsNoWholeTable(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "state.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rows, err := s.read.Query("EXPLAIN QUERY PLAN "+attached("expires <= ?"), 0)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := collect(rows, func(r *sql.Rows) (detail string, err error) {
		var id, parent, unused int
		return detail, r.Scan(&id, &parent, &unused, &detail)
	})
	if err != nil || len(plan) == 0 {
		t.Fatalf("plan %q, %v", plan, err)
	}
	for _, step := range plan {
		if strings.HasPrefix(step, "SCAN") {
			t.Errorf("reads a whole table: %q", plan)
		}
	}
}
