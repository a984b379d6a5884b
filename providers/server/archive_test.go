package server

import (
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/florete/florete/tests/kit"
)

// TestArchive checks that expired rows are archived once they are in the tamper-evident log, and
// that the log keeps their leaves and stays valid.
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
	run := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { l.Run(ctx) })
		return func() { cancel(); wg.Wait() }
	}
	now := time.Now()
	rows := map[string]Row{}
	decide := func(days int) {
		row := Row{Time: now.AddDate(0, 0, -days), Caller: "<caller>", Outcome: Granted}
		op := row.Op()
		rows[op.Key] = row
		if _, err := db.Commit(t.Context(), store.Txn{Then: []store.Op{op}}); err != nil {
			t.Fatal(err)
		}
	}
	logged := func(n uint64) {
		t.Helper()
		kit.Eventually(t, fmt.Sprintf("%d rows", n), func() bool {
			_, c, err := l.Checkpoint(t.Context())
			return err == nil && c.Size == n
		})
	}
	decide(9)
	stop := run()
	logged(1)
	decide(9)
	logged(2)
	stop()
	for _, days := range []int{40, 12, 11, 0} {
		decide(days)
	}
	l = tlog.New(l.Config)
	s := &Server{Config: Config{Store: db, Policies: &Policies{}, Logger: none, Retention: r, Log: l}}
	s.Policies.now.Store(&compiledPolicy{})
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
	if n := left(); n != 6 {
		t.Errorf("%d rows are left before they are in the log, want all", n)
	}
	defer run()()
	logged(6)
	if n := left(); n != 3 {
		t.Errorf("%d rows are left, want 3", n)
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
	v, err := tlog.Verify(t.Context(), l.Local(), time.Time{})
	if err != nil || len(v.Faults) > 0 || v.Rows != 6 || v.Archived != 3 || v.Elsewhere != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	if fault, err := l.Compare(t.Context()); fault != "" || err != nil {
		t.Error(fault, err)
	}
}
