package tlog

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit/etcdtest"
)

// TestReplicas checks that provider hosts that share a store each have a log with all rows of all
// hosts in the same order, even if a host was away while the store dropped old changes.
func TestReplicas(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	decides := cluster.Tree(t, "demo.flor/cert")
	n := 0
	decide := func(rows int) {
		t.Helper()
		var wg sync.WaitGroup
		for range rows {
			n++
			key := fmt.Sprintf("audit/%016x-%d", time.Now().UnixNano(), n)
			wg.Go(func() {
				if _, err := decides.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key, []byte(key))}}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	logOf := func(host, dir string) *Log {
		return New(Config{
			Dir: dir, Name: "demo.flor/cert/" + host, Store: cluster.Tree(t, "demo.flor/cert"), Prefix: "audit/", Logger: slog.New(slog.DiscardHandler),
			Kept: func(now time.Time) time.Time { return now.AddDate(-1, 0, 0) },
		})
	}
	run := func(logs []*Log, f func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		for _, l := range logs {
			wg.Go(func() { l.Run(ctx) })
		}
		f()
	}
	e := &env{T: t}
	dirs := []string{t.TempDir(), t.TempDir()}
	forge, spare := logOf("forge", dirs[0]), logOf("spare", dirs[1])
	run([]*Log{forge, spare}, func() {
		decide(50)
		e.has(forge, 50)
		e.has(spare, 50)
	})
	forge = logOf("forge", dirs[0])
	run([]*Log{forge}, func() {
		decide(300)
		e.has(forge, 350)
	})
	_, revision, err := decides.List(t.Context(), "audit/")
	if err == nil {
		err = cluster.Compact(t.Context(), revision-1)
	}
	if err != nil {
		t.Fatal(err)
	}
	forge, spare = logOf("forge", dirs[0]), logOf("spare", dirs[1])
	run([]*Log{forge, spare}, func() {
		decide(30)
		e.has(forge, 380)
		e.has(spare, 380)
	})
	if a, b := order(t, forge), order(t, spare); !slices.Equal(a, b) {
		t.Errorf("logs differ:\n%s\n%s", a, b)
	}
	for _, l := range []*Log{forge, spare} {
		if v, err := Verify(t.Context(), l.Local(), time.Time{}); err != nil || len(v.Faults) > 0 || v.Rows != 380 {
			t.Errorf("%+v, %v", v, err)
		}
	}
}

// order are the keys of the rows of a log.
func order(t *testing.T, l *Log) (keys []string) {
	t.Helper()
	for leaf, err := range l.Leaves(t.Context(), 0, 380) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, leaf.Key)
	}
	return keys
}
