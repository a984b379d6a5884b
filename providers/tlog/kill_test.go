package tlog

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
)

// dies commits rows and appends them, until it is killed: TestMain runs it in a process.
func dies(dir string) {
	db, err := sqlite.Open(filepath.Join(dir, "state.db"), sqlite.Options{})
	if err != nil {
		panic(err)
	}
	l := New(Config{
		Dir: filepath.Join(dir, "log"), Name: "demo.flor/cert/forge", Store: db, Prefix: "audit/", Logger: slog.New(slog.DiscardHandler),
		Kept: func(now time.Time) time.Time { return now.AddDate(-1, 0, 0) },
	})
	go l.Run(context.Background())
	for n := 0; ; n++ {
		txn := store.Txn{}
		for i := range 1 + n%3 {
			txn.Then = append(txn.Then, store.Put(fmt.Sprintf("audit/%016x-%d", time.Now().UnixNano(), i), []byte("{}")))
		}
		if _, err := db.Commit(context.Background(), txn); err != nil {
			panic(err)
		}
		time.Sleep(rand.N(2 * time.Millisecond))
	}
}

// TestKilled checks that after the process is killed at any moment, its log extends the earlier log
// and has each row once.
func TestKilled(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.db.Close()
	var before hostapi.VerifiedCheckpoint
	grew := 0
	after := 1200 * time.Millisecond // at most, and longer where a process does not come that far
	for n := 0; grew < 8; n++ {
		if n == 60 {
			t.Fatalf("it grew %d times: the kills hit nothing", grew)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "FLORETE_TEST_DIES="+e.dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Rows are appended a second after the start, and each second.
		time.Sleep(900*time.Millisecond + rand.N(after))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		r := Reader{filepath.Join(e.dir, "log")}
		_, c, err := r.Checkpoint(t.Context())
		if err != nil || c.Size == before.Size {
			after += after / 10
		}
		if err != nil || c.Size == 0 {
			continue // it died before the first row
		}
		proof, err := r.Consistency(t.Context(), before.Size, c.Size)
		if err == nil {
			err = c.Extends(before, proof)
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.Size > before.Size {
			grew++
		}
		before = c
	}
	e.openStore()
	entries, _, err := e.db.List(t.Context(), "audit/")
	if err != nil {
		t.Fatal(err)
	}
	l := e.log()
	e.while(l, func() {
		c := e.has(l, len(entries))
		proof, err := l.Consistency(t.Context(), before.Size, c.Size)
		if err == nil {
			err = c.Extends(before, proof)
		}
		if err != nil {
			t.Error(err)
		}
	})
	e.complete(l)
	if fault, err := l.Compare(t.Context()); fault != "" || err != nil {
		t.Error(fault, err)
	}
}
