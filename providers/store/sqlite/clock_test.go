package sqlite

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
)

// TestClockWentBack checks that a lease that was taken while the clock was ahead expires after the
// clock was corrected, with or without a restart of the process.
func TestClockWentBack(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "state.db")
		var s *Store
		open := func() {
			t.Helper()
			var err error
			if s, err = Open(path, Options{}); err != nil {
				t.Fatal(err)
			}
		}
		open()
		lease, err := s.Lease(t.Context(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{{Key: "a", Lease: lease}}}); err != nil {
			t.Fatal(err)
		}
		ahead := time.Now().Add(6 * time.Hour).UnixMilli()
		if _, err := s.update(t.Context(), func(tx *tx) error {
			s.clock = ahead
			return tx.exec("UPDATE leases SET expires = ttl + ?", ahead)
		}); err != nil {
			t.Fatal(err)
		}
		if restarted {
			s.Close()
			open()
		}
		kit.Succeeds(t, "the lease to end", func() error {
			_, err := s.Commit(t.Context(), store.Txn{If: []store.Cond{{Key: "a"}}, Then: []store.Op{store.Put("b", nil)}})
			if err != nil && !errors.Is(err, store.ErrConflict) {
				t.Fatal(err)
			}
			return err
		})
		s.Close()
	}
}
