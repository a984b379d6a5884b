package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/store"
)

// State describes the keys that a kind keeps in the state store, for backups and for moving them to
// another store.
type State struct {
	// Remembered lists the prefixes of the keys that a backup contains. A restore writes such keys
	// if they are absent. None of the keys may contain a secret, or make a secret valid again that
	// was replaced.
	Remembered []string

	// Ending contains the prefixes of keys that end with a lease. The value is the longest lifetime
	// of such a key. A move copies these keys. If the lifetime is zero, the keys belong to a
	// running process and are not copied.
	Ending map[string]time.Duration

	// Restored returns the value that a restore writes for a key. The argument value is the value
	// in the backup. If Restored is nil, the value is not changed.
	Restored func(key string, value []byte) ([]byte, error)

	// Secrets reports whether hosts have secrets that this kind makes as a Rotator. Hosts must
	// request these secrets again after the state was lost.
	Secrets bool
}

// Stateful is an optional interface of a Section. It is for kinds that keep their own keys in the
// state store.
type Stateful interface {
	State() State
}

// StateOf returns the State of a kind, given the kind's settings. It includes the keys that the
// server itself stores for every kind.
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

// Ends reports whether a key is deleted when a lease ends, and returns the longest lifetime of such
// a key.
func (s State) Ends(key string) (within time.Duration, ends bool) {
	for p, d := range s.Ending {
		if strings.HasPrefix(key, p) {
			return d, true
		}
	}
	return 0, false
}

// Answered reports whether the store contains an answer that the caller received for a need.
func Answered(ctx context.Context, s store.Store, caller spiffe.ID, need string) (bool, error) {
	e, err := store.Find(ctx, s, place(caller, need))
	return e.Modified != 0, err
}
