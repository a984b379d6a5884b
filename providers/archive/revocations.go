package archive

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/store"
)

// revoking is the key of the revocation list in the state store. The list is independent of the
// versions of documents.
const revoking = everything + "revocations"

// RevocationsKey is the key of the revocation list in the state store of kind config.
const RevocationsKey = revoking

// DecodeRevocations decodes the value that the state store has under RevocationsKey.
func DecodeRevocations(value []byte) (trust.SignedRevocations, error) {
	var r Revocations
	err := json.Unmarshal(value, &r)
	return r.Signed, err
}

// Revocations is the signed revocation list that the provider offers to hosts.
type Revocations struct {
	Signed  trust.SignedRevocations `json:"signed"`
	Number  int64                   `json:"number"` // zero if there is no list
	Entries int                     `json:"entries"`

	revision int64 // revision of the key
}

// Revocations returns the revocation list that hosts receive. If no list was ever stored, it
// returns the zero value.
func (a Archive) Revocations(ctx context.Context) (r Revocations, err error) {
	r.revision, err = store.Load(ctx, a, revoking, &r)
	return r, err
}

// ListTerms are the conditions under which the archive accepts a revocation list.
type ListTerms struct {
	Cluster string
	Signers signers.Set // signing keys of the list, with their threshold

	// Record returns changes to make in the transaction that replaces the revocation list. The
	// argument last is the list that is replaced, or nil for the first list. Record may be nil.
	Record func(last, next *trust.Revocations) []store.Op
}

// SetRevocations replaces the revocation list that hosts are offered. The new list must have the
// signatures that the terms require and a higher number than the current list, and must continue
// that list. Otherwise the error is a Refusal. If the new list is the current list, nothing changes
// and changed is false.
func (a Archive) SetRevocations(ctx context.Context, s trust.SignedRevocations, t ListTerms) (next Revocations, changed bool, err error) {
	list, err := s.Open()
	if err == nil {
		err = s.Verify(list, t.Cluster, t.Signers)
	}
	if err != nil {
		return next, false, refuse(err)
	}
	last, err := a.Revocations(ctx)
	if err != nil {
		return next, false, err
	}
	if last.Signed == s {
		return last, false, nil
	}
	if list.Number <= last.Number {
		return last, false, refusef("revocation list %d is offered here, this is %d: its number never goes back: read that one, and change it again", last.Number, list.Number)
	}
	was, _ := last.Signed.Open() // nil if it cannot be read; then every entry counts as new
	if err := list.Follows(was); err != nil {
		return last, false, refuse(err)
	}
	next = Revocations{Signed: s, Number: list.Number, Entries: len(list.Entries) + len(list.Certificates)}
	value, err := json.Marshal(next)
	if err != nil {
		return last, false, err
	}
	ops := []store.Op{store.Put(revoking, value)}
	if t.Record != nil {
		ops = append(ops, t.Record(was, list)...)
	}
	_, err = a.Commit(ctx, store.Txn{If: []store.Cond{{Key: revoking, Modified: last.revision}}, Then: ops})
	if errors.Is(err, store.ErrConflict) {
		err = refusef("another revocation list came meanwhile: read that one, and change it again: %w", err)
	}
	return next, err == nil, err
}
