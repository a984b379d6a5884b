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

// State says what a kind's keys are to a state that is backed up, or moves to another store.
type State struct {
	// Remembered starts the keys that a backup has, and that are put back where they are
	// absent. None of them holds a secret, or has one that was replaced work again.
	Remembered []string

	// Ending starts the keys that end by lease, with the longest time in which they do. They
	// move. What is left to zero is of a process at work, and does not.
	Ending map[string]time.Duration

	// Restored is what is put back of a value. It may be nil.
	Restored func(key string, value []byte) ([]byte, error)

	// Secrets is that hosts have secrets of the kind which a Rotator makes.
	Secrets bool
}

// Stateful is a Section whose kind has keys of its own.
type Stateful interface {
	State() State
}

// StateOf is that of the kind of a section, with what all kinds have.
func StateOf(s Section) State {
	st := State{}
	if k, ok := s.(Stateful); ok {
		st = k.State()
	}
	st.Remembered = append([]string{AuditPrefix, inForcePrefix, ReportPrefix}, st.Remembered...)
	return st
}

// Remembers is whether a backup has a key.
func (s State) Remembers(key string) bool {
	return slices.ContainsFunc(s.Remembered, func(p string) bool { return strings.HasPrefix(key, p) })
}

// Ends is how long a key lives at most, where it ends by lease.
func (s State) Ends(key string) (within time.Duration, ends bool) {
	for p, d := range s.Ending {
		if strings.HasPrefix(key, p) {
			return d, true
		}
	}
	return 0, false
}

// Answered is whether a store has the answer to a need of a caller.
func Answered(ctx context.Context, s store.Store, caller spiffe.ID, need string) (bool, error) {
	_, err := s.Get(ctx, place(caller, need))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
