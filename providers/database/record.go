package database

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/florete/florete/providers/seal"
	"github.com/florete/florete/providers/store"
)

// Where databases are in the store, and the passwords of their logins, sealed.
const (
	databases = "database/of/"
	passwords = "database/passwords/"
)

// login is one of a database. There are at most two, in slots a and b.
type login struct {
	Slot       string `json:"slot"`
	Generation int    `json:"generation"`
	Made       int64  `json:"made"`  // Unix seconds
	Since      int64  `json:"since"` // when a host first had it, likewise; 0 for not yet
}

// record is what is kept of a database.
type record struct {
	Logins  []login `json:"logins"`  // the one in use, then the former one while that works
	Unnamed int64   `json:"unnamed"` // since when no policy names it, in Unix seconds; 0 where one does

	passwords map[string]string // by slot; none of a login that an earlier state had
	modified  int64             // the revision that wrote it
}

// credential is a login as a server has it. Without a password it stays as it is there.
type credential struct{ Slot, Password string }

func (r record) credentials() (all []credential) {
	for _, l := range r.Logins {
		all = append(all, credential{l.Slot, r.passwords[l.Slot]})
	}
	return all
}

// next is what is to be at a time, and whether that is anything else. taken are the slots that
// the server accepts now: requested where a state that is lost may have had them.
func (r record) next(now time.Time, want spec, taken func() ([]string, error)) (record, bool, error) {
	if r.Unnamed != 0 {
		r.Unnamed = 0
		r, _, err := r.next(now, want, taken)
		return r, true, err
	}
	if len(r.Logins) == 0 {
		slots, err := taken()
		if err != nil {
			return r, false, err
		}
		for _, slot := range slots {
			r.Logins = append(r.Logins, login{Slot: slot})
		}
		return r.rotate(now, want), true, nil
	}
	current := r.Logins[0]
	switch {
	case r.passwords[current.Slot] == "":
		return r.rotate(now, want), true, nil
	case current.Since == 0 && current.Generation < want.Generation: // nobody has it yet
		current.Generation = want.Generation
		r.Logins = append([]login{current}, r.Logins[1:]...)
		return r, true, nil
	case current.Since == 0:
		return r, false, nil
	case len(r.Logins) > 1 && now.Unix() < current.Since+want.Overlap: // hosts may still have the former one
		return r, false, nil
	case len(r.Logins) > 1:
		r.Logins = r.Logins[:1]
		return r, true, nil
	case current.Generation < want.Generation, want.Rotate > 0 && now.Unix() >= current.Made+want.Rotate:
		return r.rotate(now, want), true, nil
	}
	return r, false, nil
}

// rotate adds a login in the slot that the one in use has not.
func (r record) rotate(now time.Time, want spec) record {
	l := login{Slot: "a", Generation: want.Generation, Made: now.Unix()}
	if len(r.Logins) > 0 {
		if r.Logins[0].Slot == "a" {
			l.Slot = "b"
		}
		r.Logins = r.Logins[:1]
	}
	has := map[string]string{l.Slot: rand.Text()}
	for _, former := range r.Logins {
		has[former.Slot] = r.passwords[former.Slot]
	}
	r.Logins, r.passwords = append([]login{l}, r.Logins...), has
	return r
}

// until is until when a record stays as it is.
func (r record) until(now time.Time, want spec) time.Time {
	end := now.Add(repeated)
	before := func(at int64) {
		if t := time.Unix(at, 0); t.After(now) && t.Before(end) {
			end = t
		}
	}
	if len(r.Logins) > 1 {
		before(r.Logins[0].Since + want.Overlap)
	}
	if want.Rotate > 0 {
		before(r.Logins[0].Made + want.Rotate)
	}
	return end
}

// put is the operation that keeps a record, but for its passwords.
func (r record) put(of spec) store.Op { return r.putAt(of.key()) }

func (r record) putAt(key string) store.Op {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // numbers and letters
	}
	return store.Put(databases+key, b)
}

// records are what is in a store.
type records struct {
	db  store.Store
	key *seal.Key
}

// read returns the zero record where there is none.
func (s records) read(ctx context.Context, key string) (r record, err error) {
	e, err := s.db.Get(ctx, databases+key)
	if errors.Is(err, store.ErrNotFound) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(e.Value, &r); err != nil {
		return r, err
	}
	r.modified = e.Modified
	sealed, err := s.db.Get(ctx, passwords+key)
	if errors.Is(err, store.ErrNotFound) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	plain, err := s.key.Open(sealed.Key, sealed.Value)
	if err == nil {
		err = json.Unmarshal(plain, &r.passwords)
	}
	return r, err
}

// write keeps a record with its passwords, and rows, if it is what it was when it was read, and
// returns it as it is then.
func (s records) write(ctx context.Context, key string, r record, rows ...store.Op) (record, error) {
	plain, err := json.Marshal(r.passwords)
	if err != nil {
		return r, err
	}
	r.modified, err = s.db.Commit(ctx, store.Txn{
		If:   []store.Cond{{Key: databases + key, Modified: r.modified}},
		Then: append(rows, r.putAt(key), store.Put(passwords+key, s.key.Seal(passwords+key, plain))),
	})
	return r, err
}

// due is the record that is due at a time, kept.
func (s records) due(ctx context.Context, b backend, now time.Time, want spec) (record, error) {
	for {
		r, err := s.read(ctx, want.key())
		if err != nil {
			return r, err
		}
		next, changed, err := r.next(now, want, func() ([]string, error) { return b.slots(ctx, want.Name) })
		if err != nil || !changed {
			return next, err
		}
		next, err = s.write(ctx, want.key(), next)
		if !errors.Is(err, store.ErrConflict) {
			return next, err
		}
	}
}
