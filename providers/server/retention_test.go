package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
)

// TestRetention checks which entries are deleted: expired rows, even more than a page of them,
// answers that no policy has granted for the retention time, and reports of removed hosts. All
// other entries stay.
func TestRetention(t *testing.T) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := &Server{Config: Config{Store: db, Policies: &Policies{}, Logger: slog.New(slog.DiscardHandler), Retention: Retention{Audit: 10, Answers: 3}}}
	begin := time.Unix(1_784_011_430, 0)
	day := func(n int) time.Time { return begin.AddDate(0, 0, n) }
	policy := func(nodes ...string) {
		f := &compiledPolicy{grants: map[grantKey]document.Grant{}}
		for _, n := range nodes {
			f.grants[grantKey{kit.ID("node/" + n), "oidc-wiki"}] = document.Grant{}
		}
		s.Policies.now.Store(f)
	}
	put := func(ops ...store.Op) {
		t.Helper()
		if _, err := db.Commit(t.Context(), store.Txn{Then: ops}); err != nil {
			t.Fatal(err)
		}
	}
	left := func(prefix string) (keys []string) {
		t.Helper()
		entries, _, err := db.List(t.Context(), prefix)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			keys = append(keys, strings.TrimPrefix(e.Key, prefix))
		}
		return keys
	}
	sweep := func(on int) {
		t.Helper()
		if err := s.sweep(t.Context(), day(on)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 * store.MaxOps {
		put(Row{Time: day(0).Add(time.Duration(i)), Need: fmt.Sprint(i)}.Op())
	}
	put(Row{Time: day(5)}.Op())
	answer := kit.JSON(record{Key: "k", Generation: 1, Answer: []byte("sealed")})
	report := func(on int) []byte {
		return kit.JSON(hostreport.Kept{Received: unixtime.Of(day(on)), Report: json.RawMessage("{}")})
	}
	put(store.Put("answers/node/ursula/oidc-wiki", answer), store.Put("answers/node/raishan/oidc-wiki", answer),
		store.Put("answers/node/odd/oidc-wiki", []byte("what")), store.Put(ReportPrefix+"ursula", report(0)), store.Put(ReportPrefix+"raishan", report(0)),
		store.Put("cert/device/raishan", nil))

	policy("ursula", "raishan")
	sweep(9)
	if n := len(left(AuditPrefix)); n != 3*store.MaxOps+1 {
		t.Errorf("%d rows before the time is over", n)
	}
	policy("ursula")
	sweep(10)
	sweep(11)
	if n := len(left(AuditPrefix)); n != 1 {
		t.Errorf("%d rows after it", n)
	}
	all := []string{"node/odd/oidc-wiki", "node/raishan/oidc-wiki", "node/ursula/oidc-wiki"}
	if got := left(answersPrefix); !slices.Equal(got, all) {
		t.Errorf("a day after it was granted last: %q", got)
	}
	if got := left(ReportPrefix); !slices.Equal(got, []string{"ursula"}) {
		t.Errorf("reports of %q", got)
	}
	policy("ursula", "raishan")
	sweep(12) // granted again, so the retention time starts over
	if e, err := db.Get(t.Context(), "answers/node/raishan/oidc-wiki"); err != nil || string(e.Value) != string(answer) {
		t.Errorf("granted again: %s, %v", e.Value, err)
	}
	policy("ursula")
	sweep(13)
	sweep(16)
	if got := left(answersPrefix); !slices.Equal(got, all) {
		t.Errorf("three days after: %q", got)
	}
	sweep(17)
	if got := left(answersPrefix); !slices.Equal(got, []string{all[0], all[2]}) {
		t.Errorf("four days after: %q", got)
	}
	if got := left("cert/"); len(got) != 1 {
		t.Errorf("others' keys: %q", got)
	}
}
