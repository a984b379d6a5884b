package sqlite

import (
	"errors"
	"fmt"
	"os"

	driver "modernc.org/sqlite"
	code "modernc.org/sqlite/lib"

	"github.com/florete/florete/providers/store"
)

// Gone returns store.ErrDamaged if the database file was deleted or replaced while the store has it
// open. Everything that is written to the open file is then lost when the process ends.
func (s *Store) Gone() error {
	now, err := os.Stat(s.path)
	if err == nil && os.SameFile(now, s.file) {
		return nil
	}
	what := "another file is in its place"
	if err != nil {
		what = err.Error()
	}
	return fmt.Errorf("%w: store %s: the file was removed or replaced while this process has it open, %s: nothing more is written: restart the process, which goes on with what is there; to go on from a backup: florctl state restore",
		store.ErrDamaged, s.path, what)
}

// damaged converts an error that reports damage of the file to a store.ErrDamaged. It returns other
// errors unchanged.
func (s *Store) damaged(err error) error {
	var of *driver.Error
	if !errors.As(err, &of) || errors.Is(err, store.ErrDamaged) {
		return err
	}
	switch of.Code() & 0xff {
	case code.SQLITE_CORRUPT, code.SQLITE_NOTADB:
		return fmt.Errorf("%w: store %s: %w: stop the process, move the file, those that begin with its name, and seal.key away, start it, then: florctl state restore", store.ErrDamaged, s.path, err)
	}
	return err
}
