package serveraccount

import (
	"context"

	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Record is the stored record of an account at a server: a pointer to a struct that embeds Kept.
// The store contains the record as JSON. It contains the account's secrets separately, as an
// encrypted value that is not in backups.
type Record interface{ kept() *Kept }

// Kept is the part of a Record that is not in its JSON: the account's secrets and the revision of
// the record.
type Kept struct {
	Secrets  map[string]string `json:"-"` // secrets of the account; nil if the state has none
	Modified int64             `json:"-"` // revision of the store that wrote the record
}

func (k *Kept) kept() *Kept { return k }

// state returns the key in the store of an account's record.
func (a *Accounts[R, B]) state(of string) string { return Prefix(a.kind.Name) + of }
func (a *Accounts[R, B]) secrets(of string) string {
	return a.kind.Name + "/" + a.kind.Secrets + "/" + of
}

// Prefix returns the prefix of the store keys under which the records of a kind of accounts are.
// The secrets of accounts are under keys with another prefix.
func Prefix(kind string) string { return kind + "/of/" }

// Read reads the record of an account, with its secrets, from the store into r. If there is no
// record, Read leaves r unchanged and returns nil.
func (a *Accounts[R, B]) Read(ctx context.Context, of Name, r Record) error {
	modified, err := store.Load(ctx, a.Store, a.state(of.String()), r)
	if err != nil || modified == 0 {
		return err
	}
	r.kept().Modified = modified
	_, err = a.Key.Load(ctx, a.Store, a.secrets(of.String()), &r.kept().Secrets)
	return err
}

// Is returns a condition for a transaction. It fails if the stored record has changed since Read
// returned r.
func (a *Accounts[R, B]) Is(of Name, r Record) store.Cond {
	return store.Cond{Key: a.state(of.String()), Modified: r.kept().Modified}
}

// Put returns the operation that stores a record. It does not change the account's secrets in the
// store.
func (a *Accounts[R, B]) Put(of Name, r Record) store.Op {
	b := strictjson.Encode(r)
	return store.Put(a.state(of.String()), b)
}

// Write stores a record with its secrets and the given audit rows, in one transaction. If the
// stored record has changed since it was read, Write changes nothing and returns an error.
func (a *Accounts[R, B]) Write(ctx context.Context, of Name, r Record, done ...server.Row) error {
	secrets, err := a.Key.Put(a.secrets(of.String()), r.kept().Secrets)
	if err != nil {
		return err
	}
	return a.commit(ctx, of, r, done, a.Put(of, r), secrets)
}

// Forget deletes a record with its secrets and stores the given audit rows, in one transaction. If
// the stored record has changed since it was read, Forget changes nothing and returns an error.
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
