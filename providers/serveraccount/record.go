package serveraccount

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Record is what is kept of an account: a pointer to a struct that embeds Kept. The store has
// it as JSON, and its secrets beside that, sealed: a backup has none of them.
type Record interface{ kept() *Kept }

// Kept is of a record in a store.
type Kept struct {
	Secrets  map[string]string `json:"-"` // nil where the state has none
	Modified int64             `json:"-"` // the revision that wrote it
}

func (k *Kept) kept() *Kept { return k }

// Where accounts of a kind are in the store, and their secrets.
func (a *Accounts[R, B]) state(of string) string { return Prefix(a.kind.Name) + of }
func (a *Accounts[R, B]) secrets(of string) string {
	return a.kind.Name + "/" + a.kind.Secrets + "/" + of
}

// Prefix is of the keys of all that is kept of accounts of a kind, but for secrets.
func Prefix(kind string) string { return kind + "/of/" }

// Read reads a record, and leaves it the zero one where there is none.
func (a *Accounts[R, B]) Read(ctx context.Context, of Name, r Record) error {
	e, err := a.Store.Get(ctx, a.state(of.String()))
	if err == nil {
		err = json.Unmarshal(e.Value, r)
	}
	if err == nil {
		r.kept().Modified = e.Modified
		e, err = a.Store.Get(ctx, a.secrets(of.String()))
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	plain, err := a.Key.Open(e.Key, e.Value)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, &r.kept().Secrets)
}

// Is is the condition that a record is what it was when it was read.
func (a *Accounts[R, B]) Is(of Name, r Record) store.Cond {
	return store.Cond{Key: a.state(of.String()), Modified: r.kept().Modified}
}

// Put keeps a record, but for its secrets, which stay.
func (a *Accounts[R, B]) Put(of Name, r Record) store.Op {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // numbers and letters
	}
	return store.Put(a.state(of.String()), b)
}

// Write keeps a record with its secrets, and what was done, if it is what it was when it was
// read.
func (a *Accounts[R, B]) Write(ctx context.Context, of Name, r Record, done ...server.Row) error {
	plain, err := json.Marshal(r.kept().Secrets)
	if err != nil {
		return err
	}
	at := a.secrets(of.String())
	return a.commit(ctx, of, r, done, a.Put(of, r), store.Put(at, a.Key.Seal(at, plain)))
}

// Forget removes a record, if it is what it was when it was read, and keeps what was done.
func (a *Accounts[R, B]) Forget(ctx context.Context, of Name, r Record, done ...server.Row) error {
	return a.commit(ctx, of, r, done, store.Delete(a.state(of.String())), store.Delete(a.secrets(of.String())))
}

func (a *Accounts[R, B]) commit(ctx context.Context, of Name, r Record, done []server.Row, ops ...store.Op) (err error) {
	for _, row := range done {
		ops = append(ops, row.Op())
	}
	r.kept().Modified, err = a.Store.Commit(ctx, store.Txn{If: []store.Cond{a.Is(of, r)}, Then: ops})
	for _, row := range done {
		if err == nil {
			row.Log(ctx, a.Logger)
		}
	}
	return err
}
