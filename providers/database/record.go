package database

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/florete/florete/providers/serveraccount"
	"github.com/florete/florete/providers/store"
)

// login is a login of a database. A database has at most two logins, in slots a and b.
type login struct {
	Slot       string `json:"slot"`
	Generation int    `json:"generation"`
	Made       int64  `json:"made"`  // Unix seconds
	Since      int64  `json:"since"` // when a host first had it, likewise; 0 for not yet
}

// record is the stored record of a database and its logins.
type record struct {
	Logins  []login `json:"logins"`  // the login in use, then the former login while it works
	Unnamed int64   `json:"unnamed"` // time from which no policy names the database, in Unix seconds; 0 if one does

	serveraccount.Kept // passwords by slot; none of a login that an earlier state had
}

// credential is a login and its password. If there is no password, the login at the server is left
// unchanged.
type credential struct{ Slot, Password string }

func (r record) credentials() (all []credential) {
	for _, l := range r.Logins {
		all = append(all, credential{l.Slot, r.Secrets[l.Slot]})
	}
	return all
}

// next returns the record that is due at the time now. The second result reports whether that
// record differs from r. The function taken returns the slots that the server accepts, because a
// state that was lost may have used them.
func (r record) next(now time.Time, want Request, taken func() ([]string, error)) (record, bool, error) {
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
	case r.Secrets[current.Slot] == "":
		return r.rotate(now, want), true, nil
	case current.Since == 0 && current.Generation < want.Generation: // no host has this login yet
		current.Generation = want.Generation
		r.Logins = append([]login{current}, r.Logins[1:]...)
		return r, true, nil
	case current.Since == 0:
		return r, false, nil
	case len(r.Logins) > 1 && current.overlaps(now, want): // hosts may still have the former one
		return r, false, nil
	case len(r.Logins) > 1:
		r.Logins = r.Logins[:1]
		return r, true, nil
	case current.Generation < want.Generation, want.Rotate > 0 && now.Unix() >= current.Made+want.Rotate:
		return r.rotate(now, want), true, nil
	}
	return r, false, nil
}

// skew is the largest expected difference between the clocks of provider hosts, in seconds.
const skew = 60

// overlaps reports whether hosts may still use the former login. If the recorded time is later than
// now, another host's clock was ahead, and the time is ignored.
func (l login) overlaps(now time.Time, want Request) bool {
	return now.Unix() < l.Since+want.Overlap && l.Since <= now.Unix()+skew
}

// rotate returns the record with a new login in the free slot.
func (r record) rotate(now time.Time, want Request) record {
	l := login{Slot: "a", Generation: want.Generation, Made: now.Unix()}
	if len(r.Logins) > 0 {
		if r.Logins[0].Slot == "a" {
			l.Slot = "b"
		}
		r.Logins = r.Logins[:1]
	}
	has := map[string]string{l.Slot: rand.Text()}
	for _, former := range r.Logins {
		has[former.Slot] = r.Secrets[former.Slot]
	}
	r.Logins, r.Secrets = append([]login{l}, r.Logins...), has
	return r
}

// until returns the time at which the record must change next.
func (r record) until(now time.Time, want Request) time.Time {
	end := now.Add(serveraccount.Repeated)
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

// due stores the record that is due at the time now, and returns it.
func (d *Databases) due(ctx context.Context, b backend, now time.Time, want Request) (next record, err error) {
	err = store.Retry(ctx, func() error {
		var r record
		if err := d.Read(ctx, want.Of(), &r); err != nil {
			return err
		}
		var changed bool
		next, changed, err = r.next(now, want, func() ([]string, error) { return b.slots(ctx, want.Name) })
		if err != nil || !changed {
			return err
		}
		return d.Write(ctx, want.Of(), &next)
	})
	return next, err
}
