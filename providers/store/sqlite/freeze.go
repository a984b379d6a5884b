package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/florete/florete/providers/store"
)

// frozen is the text of SQLite's error for a change to a frozen store. All processes get this
// error.
const frozen = "florete: this state has moved"

// Freeze applies one last operation and makes the store read-only, in one transaction. Every later
// change fails with store.ErrMoved, also in other processes that have the file open.
func (s *Store) Freeze(ctx context.Context, last store.Op) error {
	_, err := s.update(ctx, func(t *tx) error {
		if err := t.revise(func() error { return t.put(last) }); err != nil {
			return err
		}
		for _, change := range []string{"INSERT", "UPDATE", "DELETE"} {
			text := fmt.Sprintf("CREATE TRIGGER frozen_%s BEFORE %[1]s ON kv BEGIN SELECT RAISE(ABORT, '%s'); END", change, frozen)
			if err := t.exec(text); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// moved converts the error of a frozen store to store.ErrMoved. It returns other errors unchanged.
func moved(err error) error {
	if err != nil && strings.Contains(err.Error(), frozen) {
		return store.ErrMoved
	}
	return err
}
