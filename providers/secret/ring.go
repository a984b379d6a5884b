package secret

import (
	"context"
	"encoding/json"
	"time"

	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// prefix is the beginning of the keys of sealed secrets.
const prefix = "secret/values/"

// version is one value of a secret that has a name.
type version struct {
	Generation int    `json:"generation"`
	Generate   string `json:"generate"`
	Length     int    `json:"length"`
	Made       int64  `json:"made"` // Unix seconds
	Uses       int64  `json:"uses"` // since when it is in use, likewise
	Secret     string `json:"secret"`
	Public     string `json:"public"`
	Serial     int64  `json:"serial,omitempty"` // of the policy that it was made by
}

// ring is a list of at most two versions of a secret, in the order of their use. One of them is in
// use.
type ring []version

// at returns the index of the version in use at a time.
func (r ring) at(now time.Time) int {
	use := 0 // also where the clock went back
	for i, v := range r {
		if v.Uses <= now.Unix() {
			use = i
		}
	}
	return use
}

// other returns the version in addition to the one in use. It is the next version or the former
// version. Most of the time there is none.
func (r ring) other(now time.Time) version {
	use := r.at(now)
	switch {
	case use+1 < len(r):
		return r[use+1]
	case use > 0:
		return r[use-1]
	}
	return version{}
}

// next returns the ring that is due at a time, and reports whether it differs from r. Readers that
// hold two values have the next version for the duration Overlap before it is in use, and the
// former version for the same duration afterwards. A change therefore begins only when the change
// before it has ended.
func (r ring) next(now time.Time, s spec) (next ring, changed bool, err error) {
	for i, v := range r {
		if i+1 == len(r) || now.Unix() < r[i+1].Uses+s.Overlap {
			next = append(next, v)
		}
	}
	changed = len(next) != len(r)
	uses := now.Unix()
	if len(next) > 0 {
		if len(next) > 1 && next[len(next)-1].Uses <= uses && s.Overlap > 0 {
			return next, changed, nil // readers may still have the former one
		}
		newest := next[len(next)-1]
		due := newest.Uses + s.Rotate
		switch {
		case !s.made(newest):
			uses += s.Overlap
			// A version that is not in use yet is dropped.
			if newest.Uses > now.Unix() && len(next) > 1 {
				next = next[:len(next)-1]
			}
		case s.Rotate > 0 && now.Unix() >= due-s.Overlap:
			uses = max(due, uses+s.Overlap)
		default:
			return next, changed, nil
		}
	}
	v := version{Generation: s.Generation, Generate: s.Generate, Length: s.Length, Made: now.Unix(), Uses: uses, Serial: s.Serial}
	if v.Secret, v.Public, err = s.make(); err != nil {
		return nil, false, err
	}
	if s.Overlap == 0 {
		next = nil
	}
	return append(next, v), true, nil
}

// made reports whether a version fulfils a spec. A spec with a lower generation does not bring a
// former version back. The policy of a replica that lags behind does not do so either. Otherwise
// two replicas would replace the secret in turn.
func (s spec) made(v version) bool {
	return v.Generation >= s.Generation && (v.Generate == s.Generate && v.Length == s.Length || v.Serial > s.Serial)
}

// until returns the time until which the ring does not change.
func (r ring) until(now time.Time, s spec) time.Time {
	end := now.Add(repeated)
	before := func(at int64) {
		if t := time.Unix(at, 0); t.After(now) && t.Before(end) {
			end = t
		}
	}
	for i, v := range r {
		before(v.Uses)
		if i > 0 {
			before(v.Uses + s.Overlap)
		}
	}
	if s.Rotate > 0 {
		before(r[len(r)-1].Uses + s.Rotate - s.Overlap)
	}
	return end
}

// values reads and writes the secrets in a store.
type values struct {
	db  store.Store
	key *sealedstore.Key
}

// read returns the ring of the secret with a name, and the revision that wrote it.
func (v values) read(ctx context.Context, name string) (r ring, revision int64, err error) {
	revision, err = v.key.Load(ctx, v.db, prefix+name, &r)
	return r, revision, err
}

// due returns the ring that is due at a time. If the ring differs from the stored one, due also
// returns the change that stores it.
func (v values) due(ctx context.Context, now time.Time, s spec) (ring, server.Decision, error) {
	r, revision, err := v.read(ctx, s.Secret)
	if err != nil {
		return nil, server.Decision{}, err
	}
	next, changed, err := r.next(now, s)
	if err != nil || !changed {
		return next, server.Decision{}, err
	}
	plain, err := json.Marshal(next)
	if err != nil {
		return nil, server.Decision{}, err
	}
	at := prefix + s.Secret
	return next, server.Decision{
		If:   []store.Cond{{Key: at, Modified: revision}},
		Then: []store.Op{store.Put(at, v.key.Seal(at, plain))},
	}, nil
}
