package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/store"
)

// State describes the keys of a kind, for backups and for moves to another store.
type State struct {
	// Remembered lists prefixes of the keys that a backup contains and that a restore writes if
	// they are absent. None of them holds a secret or makes a replaced secret work again.
	Remembered []string

	// Ending maps prefixes of keys that end with a lease to their longest lifetime. A move copies
	// these keys. Keys with lifetime zero belong to a running process and are not copied.
	Ending map[string]time.Duration

	// Restored returns the value that a restore writes for a value of a backup. It may be nil.
	Restored func(key string, value []byte) ([]byte, error)

	// Secrets reports whether hosts have secrets that a Rotator of the kind makes.
	Secrets bool
}

// Stateful is implemented by a Section whose kind has keys of its own.
type Stateful interface {
	State() State
}

// StateOf returns the State of a section's kind, including the keys that all kinds have.
func StateOf(s Section) State {
	st := State{}
	if k, ok := s.(Stateful); ok {
		st = k.State()
	}
	st.Remembered = append([]string{AuditPrefix, inForcePrefix, ReportPrefix}, st.Remembered...)
	return st
}

// Remembers reports whether a backup contains a key.
func (s State) Remembers(key string) bool {
	return slices.ContainsFunc(s.Remembered, func(p string) bool { return strings.HasPrefix(key, p) })
}

// Ends returns the longest lifetime of a key that ends with a lease, and whether it is one.
func (s State) Ends(key string) (within time.Duration, ends bool) {
	for p, d := range s.Ending {
		if strings.HasPrefix(key, p) {
			return d, true
		}
	}
	return 0, false
}

// Answered reports whether a store has a recorded answer for a need of a caller.
func Answered(ctx context.Context, s store.Store, caller spiffe.ID, need string) (bool, error) {
	_, err := s.Get(ctx, place(caller, need))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
