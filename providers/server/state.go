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

// State describes the keys that a kind has in the store, for backups and for moves to another
// store.
type State struct {
	// Remembered lists the prefixes of keys that a backup contains. A restore writes such keys if
	// they are absent. None of them may hold a secret, or make a replaced secret work again.
	Remembered []string

	// Ending maps the prefixes of keys that end with a lease to the longest lifetime of such a key.
	// A move copies these keys. A lifetime of zero stands for keys of a running process, which are
	// not copied.
	Ending map[string]time.Duration

	// Restored converts a value from a backup to the value that a restore writes. It may be nil.
	Restored func(key string, value []byte) ([]byte, error)

	// Secrets reports whether hosts have secrets that this kind makes as a Rotator.
	Secrets bool
}

// Stateful is implemented by a Section whose kind stores keys of its own.
type Stateful interface {
	State() State
}

// StateOf returns the State of the kind with these settings. It includes the keys that every kind
// has.
func StateOf(s Section) State {
	st := State{}
	if k, ok := s.(Stateful); ok {
		st = k.State()
	}
	st.Remembered = append([]string{AuditPrefix, inForcePrefix, ReportPrefix}, st.Remembered...)
	return st
}

// Remembers reports whether a backup contains the given key.
func (s State) Remembers(key string) bool {
	return slices.ContainsFunc(s.Remembered, func(p string) bool { return strings.HasPrefix(key, p) })
}

// Ends returns the longest lifetime of a key that ends with a lease. ends is false for all other
// keys.
func (s State) Ends(key string) (within time.Duration, ends bool) {
	for p, d := range s.Ending {
		if strings.HasPrefix(key, p) {
			return d, true
		}
	}
	return 0, false
}

// Answered reports whether a store contains a recorded answer to a need of a caller.
func Answered(ctx context.Context, s store.Store, caller spiffe.ID, need string) (bool, error) {
	_, err := s.Get(ctx, place(caller, need))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
