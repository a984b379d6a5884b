package cert

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
)

// TestUsedLease checks that nonces of about the same time share a lease that outlives each of them.
func TestUsedLease(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var u used
	at := func(now time.Time) store.LeaseID {
		t.Helper()
		id, err := u.lease(t.Context(), s, now)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	now := time.Now()
	first := at(now)
	if got := at(now.Add(nonceLife - time.Second)); got != first {
		t.Errorf("within the life of a nonce: lease %d, want %d", got, first)
	}
	second := at(now.Add(nonceLife))
	if second == first {
		t.Errorf("lease %d is of nonces that it does not outlive", first)
	}
	if got := at(now); got == second {
		t.Errorf("lease %d, whose end may be reached sooner: the clock was set back", got)
	}
}
