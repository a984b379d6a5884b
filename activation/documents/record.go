package documents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/florete/florete"
	"github.com/florete/florete/activation/delivery"
)

// record is Layout.State: what was seen of each origin.
type record struct {
	Closure string             `json:"closure"` // digest of the envelopes last taken from it
	Network map[string]version `json:"network"` // by kind, the newest that the network brought, or that the closure went back from
}

// version orders the documents of one kind.
type version struct {
	Serial int64  `json:"serial"`
	Digest string `json:"digest"`
}

// loadRecord reads the record. Without one the closure, which is trusted, wins;
// one that cannot be read is an error, since it keeps the network from going back.
func loadRecord(path string) (record, error) {
	var r record
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = florete.Decode(b, &r)
	}
	if err != nil {
		return record{}, fmt.Errorf("%s: %w: remove it to start again from the closure", path, err)
	}
	return r, nil
}

func (r record) save(path string) error {
	if r.Network == nil {
		r.Network = map[string]version{}
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return delivery.WriteFile(path, append(b, '\n'), 0o644)
}

// floor is what a document of a kind from the network must be newer than.
func (r record) floor(kind string, held florete.Envelope) florete.Envelope {
	v := r.Network[kind]
	if brought := (florete.Envelope{Serial: v.Serial, Digest: v.Digest}); brought.Newer(held) {
		return brought
	}
	return held
}

// leave records what a set that is held has newer than the one that takes its place,
// so that the network does not bring that back, and tells whether it has any.
func (r *record) leave(held, next Set) bool {
	left := held.Document.Envelope.Newer(next.Document.Envelope) && r.brought(held.Document.Envelope)
	if held.Policy != nil && next.Policy != nil && held.Policy.Envelope.Newer(next.Policy.Envelope) {
		left = r.brought(held.Policy.Envelope) || left
	}
	return left
}

// brought records a document that the network brought and tells whether it is the
// newest so far.
func (r *record) brought(e florete.Envelope) bool {
	v := r.Network[e.Kind]
	if !e.Newer(florete.Envelope{Serial: v.Serial, Digest: v.Digest}) {
		return false
	}
	if r.Network == nil {
		r.Network = map[string]version{}
	}
	r.Network[e.Kind] = version{e.Serial, e.Digest}
	return true
}
