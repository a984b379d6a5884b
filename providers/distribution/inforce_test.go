package distribution

import (
	"path/filepath"
	"testing"

	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// lagging is a store whose nearest member lags behind the majority.
type lagging struct {
	store.Store
	behind store.Store
}

func (l lagging) Local() store.Store { return l.behind }

// TestInForceOfMajority checks that the record of the version in force follows the majority of the
// store. A member that lags would otherwise cause a record of a rollback.
func TestInForceOfMajority(t *testing.T) {
	open := func() store.Store {
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	newest, behind := open(), open()
	key := kit.SigningKey("demo-1")
	providertest.Import(t, behind, key, providertest.Tree(key, 1000, "one", "ursula"))
	providertest.Import(t, newest, key, providertest.Tree(key, 1001, "two", "ursula"))
	v, err := New(archive.Archive{Store: lagging{newest, behind}}).inForce(t.Context())
	if err != nil || v.Serial != 1001 {
		t.Errorf("got serial %d, %v, want 1001", v.Serial, err)
	}
}
