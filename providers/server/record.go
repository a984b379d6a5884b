package server

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/store"
)

// record is the last answer to a need of a caller. It is kept so that the same request receives the
// same answer. All answers are sealed, even if they contain no secret.
type record struct {
	Key        string `json:"key"`
	Generation int    `json:"generation"`
	Rotation   int    `json:"rotation,omitempty"`
	Expires    int64  `json:"expires"`
	Answer     []byte `json:"answer"`
	Ungranted  int64  `json:"ungranted,omitempty"` // since when no policy grants it, as a sweep found
}

const answersPrefix = "answers/"

func place(caller spiffe.ID, need string) string {
	return answersPrefix + caller.Short() + "/" + need
}

// recorded reads the record under a key. It also returns the revision of the record, which is zero
// if there is none.
func (s *Server) recorded(ctx context.Context, place string) (r record, at int64, err error) {
	at, err = store.Load(ctx, s.Store, place, &r)
	return r, at, err
}

// lately is a record that this process committed, with its revision but without its answer. It
// saves reading the record from the store. A decision based on it is committed on condition that
// the record still has this revision. If it does not, the record is read from the store.
type lately struct {
	place    string
	record   record
	revision int64
}

// latest is the number of records that are remembered. Each takes 300 bytes of memory.
const latest = 16 << 10

// recall returns the same as recorded, from memory if possible. If the record belongs to another
// request, the returned record has no answer.
func (s *Server) recall(ctx context.Context, place, key string) (r record, at int64, err error) {
	if l, ok := s.lately.Get(place); ok && l.record.Key != key {
		return l.record, l.revision, nil
	}
	return s.recorded(ctx, place)
}

// answered returns the answer of a record. If the record came from memory, it reads the answer from
// the store.
func (s *Server) answered(ctx context.Context, place string, r record) (a hostapi.Answer, err error) {
	if r.Answer == nil {
		if r, _, err = s.recorded(ctx, place); err != nil {
			return a, err
		}
	}
	if r.Answer == nil {
		return a, nil
	}
	b, err := s.Key.Open(place, r.Answer)
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	return a, err
}

// committed remembers the record of a change after the commit. If the commit failed, it removes the
// record from memory.
func (s *Server) committed(l *lately, revision int64, err error) {
	switch {
	case l == nil:
	case err != nil:
		s.lately.Remove(l.place)
	default:
		l.record.Answer, l.revision = nil, revision
		s.lately.Add(l.place, *l)
	}
}

// same reports whether the record answers a call with the given idempotency key.
func (r record) same(key string, c Call) bool {
	return r.Key == key && r.Rotation == c.Rotation.Number && (r.Expires == 0 || c.Now.Unix() < r.Expires)
}

// keep completes an answer and its audit row. It then adds the decision and its record to a change.
// The argument revision is the store revision of the last record.
func (a *Request) keep(c *Change, place string, revision int64, call Call, d Decision) (encoded, error) {
	a.Row.Detail = d.Detail
	if call.Rotation.Number > 0 {
		number := strconv.Itoa(call.Rotation.Number)
		d.Answer.Values[hostapi.ValueRotation] = number
		if a.Row.Detail == nil {
			a.Row.Detail = map[string]string{}
		}
		a.Row.Detail["rotation"] = number
	}
	answer, err := json.Marshal(d.Answer)
	if err != nil {
		return nil, err
	}
	r := record{Key: a.Row.Key, Generation: call.Request.Generation, Rotation: call.Rotation.Number, Expires: d.Answer.Expires, Answer: a.Key.Seal(place, answer)}
	if !d.Repeated.IsZero() {
		r.Expires = d.Repeated.Unix()
	}
	value, err := json.Marshal(r)
	c.Add(d)
	c.Add(Decision{If: []store.Cond{{Key: place, Modified: revision}}, Then: []store.Op{store.Put(place, value)}})
	c.record = &lately{place: place, record: r}
	c.alarm(a.Row, d.Alarm)
	return answer, err
}
