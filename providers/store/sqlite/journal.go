package sqlite

import (
	"slices"
	"strings"

	"github.com/florete/florete/providers/store"
)

// change is one change that a revision makes to a key.
type change struct {
	key     string
	deleted bool
}

// journal writes the changes of the current revision, so that Watch can read them.
func (t *tx) journal() error {
	step := 0
	for some := range slices.Chunk(t.touched, store.MaxOps) {
		args := []any{t.revision}
		for _, c := range some {
			step++
			args = append(args, step, []byte(c.key), c.deleted)
		}
		err := t.exec("INSERT INTO changes VALUES (?1, ?, ?, ?)"+strings.Repeat(", (?1, ?, ?, ?)", len(some)-1), args...)
		if err != nil {
			return err
		}
	}
	return nil
}
