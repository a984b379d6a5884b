package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/store"
)

// record is the last answer to one need of one caller, kept so that the same
// request has the same answer. An answer is sealed, whether secret or not.
type record struct {
	Key        string `json:"key"`
	Generation int    `json:"generation"`
	Expires    int64  `json:"expires"`
	Answer     []byte `json:"answer"`
}

func place(caller florete.ID, need string) string { return "answers/" + caller.Short() + "/" + need }

// recorded reads the record at a place; at is its revision, zero when there is none.
func (s *Server) recorded(ctx context.Context, place string) (r record, at int64, err error) {
	e, err := s.Store.Get(ctx, place)
	if errors.Is(err, store.ErrNotFound) {
		return record{}, 0, nil
	}
	if err != nil {
		return record{}, 0, err
	}
	if err := json.Unmarshal(e.Value, &r); err != nil {
		return record{}, 0, fmt.Errorf("%s: %w", place, err)
	}
	return r, e.Modified, nil
}

// same is whether the record still answers a request with the key.
func (r record) same(key string, now time.Time) bool {
	return r.Key == key && (r.Expires == 0 || now.Unix() < r.Expires)
}

func (s *Server) open(place string, r record) (a api.Answer, err error) {
	b, err := s.Key.Open(place, r.Answer)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(b, &a)
}

// keep is the operation that records an answer.
func (s *Server) keep(place string, key string, generation int, a api.Answer) (store.Op, error) {
	b, err := json.Marshal(a)
	if err != nil {
		return store.Op{}, err
	}
	v, err := json.Marshal(record{Key: key, Generation: generation, Expires: a.Expires, Answer: s.Key.Seal(place, b)})
	return store.Put(place, v), err
}
