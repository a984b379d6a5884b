package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/providers/tlog"
)

// TestArchive: rows that are over are archived once they are in the tamper-evident log, which
// keeps their leaves and stays right.
func TestArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := sqlite.Open(filepath.Join(dir, "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	none := slog.New(slog.DiscardHandler)
	r := Retention{Audit: 10}
	l := tlog.New(tlog.Config{Dir: filepath.Join(dir, "log"), Name: "demo.flor/cert/forge", Store: db, Prefix: AuditPrefix, Kept: r.Rows, Logger: none})
	s := &Server{Config: Config{Store: db, Policies: &Policies{}, Logger: none, Retention: r, Log: l}}
	s.Policies.now.Store(&compiledPolicy{})
	now := time.Now()
	rows := map[string]Row{}
	for _, days := range []int{40, 12, 11, 9, 0} {
		row := Row{Time: now.AddDate(0, 0, -days), Caller: "<caller>", Outcome: Granted}
		op := row.Op()
		rows[op.Key] = row
		if _, err := db.Commit(t.Context(), store.Txn{Then: []store.Op{op}}); err != nil {
			t.Fatal(err)
		}
	}
	left := func() int {
		t.Helper()
		if err := s.sweep(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		entries, _, err := db.List(t.Context(), AuditPrefix)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	if n := left(); n != 5 {
		t.Errorf("%d rows are left before they are in the log, want all", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { l.Run(ctx) })
	for end := time.Now().Add(20 * time.Second); l.Appended() < 6 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := left(); n != 2 {
		t.Errorf("%d rows are left, want 2", n)
	}
	archived := 0
	files, _ := filepath.Glob(filepath.Join(dir, "log", "archive", "*.jsonl"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			var a struct {
				Key string
				Row Row
			}
			if err := json.Unmarshal([]byte(line), &a); err != nil {
				t.Fatal(err)
			}
			if was := rows[a.Key]; !a.Row.Time.Equal(was.Time) || a.Row.Time.Format("2006-01") != strings.TrimSuffix(filepath.Base(f), ".jsonl") || !strings.Contains(line, string(was.Op().Value)) {
				t.Errorf("%s in %s, want %+v", line, f, was)
			}
			archived++
		}
	}
	if archived != 3 {
		t.Errorf("%d rows are archived in %s, want 3", archived, files)
	}
	var v tlog.Verdict
	for range 100 {
		if v, err = tlog.Verify(t.Context(), l.Local()); err == nil && v.Rows == 5 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil || len(v.Faults) > 0 || v.Rows != 5 || v.Archived != 3 {
		t.Errorf("%+v, %v", v, err)
	}
	if fault, err := l.Compare(t.Context()); fault != "" || err != nil {
		t.Error(fault, err)
	}
}
