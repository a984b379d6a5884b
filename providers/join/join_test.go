package join_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/join"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
)

// between is a store that calls do once, before its second read.
type between struct {
	store.Store
	reads int
	do    func()
}

func (b *between) Get(ctx context.Context, key string) (store.Entry, error) {
	if b.reads++; b.reads == 2 {
		b.do()
	}
	return b.Store.Get(ctx, key)
}

// TestReceiveTwice checks that a device which sends its request twice at the same time is admitted
// both times, although its token has one use.
func TestReceiveTwice(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	token, err := hostapi.NewJoinToken("p")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromSigner(kit.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	record := join.Token{ID: hostapi.TokenID(token.Public()), Hosts: "f", Uses: 1, Left: 1, Until: unixtime.Of(now.Add(time.Hour))}
	put := store.Put(join.TokenPrefix+record.ID, kit.JSON(record))
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{put}}); err != nil {
		t.Fatal(err)
	}
	request := hostapi.Join{Device: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))), Token: token.Public(), Facts: []byte("{}")}
	receive := func(s store.Store) (hostapi.Joined, server.Decision) {
		a, d, err := join.Receive(t.Context(), s, server.Call{Caller: kit.ID("node/f"), Now: now}, request, "192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		return a, d
	}
	first := sync.OnceFunc(func() {
		_, d := receive(s)
		if _, err := s.Commit(t.Context(), store.Txn{If: d.If, Then: d.Then}); err != nil {
			t.Fatal(err)
		}
	})
	second, d := receive(&between{Store: s, do: first})
	if second.State != hostapi.JoinPending || len(d.Then) != 0 {
		t.Errorf("the second request: state %q, %d changes, want the state of the first and no change", second.State, len(d.Then))
	}
}
