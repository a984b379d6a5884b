package providertest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Faulty is a store whose commits fail when a test wants them to. A commit can fail before or after
// it takes effect.
type Faulty struct {
	store.Store
	mu            sync.Mutex
	before, after error
	meanwhile     func()
	only          func(store.Txn) bool
}

// Only limits the requested faults to transactions for which wanted returns true. If wanted is nil,
// a commit of any transaction can fail.
func (f *Faulty) Only(wanted func(store.Txn) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.only = wanted
}

// Meanwhile arranges that the given function is called once, just before the next commit. The
// function can change the store, so that the commit meets a state that it does not expect.
func (f *Faulty) Meanwhile(run func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.meanwhile = run
}

// Fail makes the next commit return an error without taking effect.
func (f *Faulty) Fail(err error) { f.set(err, nil) }

// Lose makes the next commit take effect but return err, as if the store had crashed before it
// could answer.
func (f *Faulty) Lose(err error) { f.set(nil, err) }

func (f *Faulty) set(before, after error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

// Commit commits the transaction, unless Fail or Lose makes it fail.
func (f *Faulty) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	f.mu.Lock()
	if f.only != nil && !f.only(txn) {
		f.mu.Unlock()
		return f.Store.Commit(ctx, txn)
	}
	before, after, meanwhile := f.before, f.after, f.meanwhile
	f.before, f.after, f.meanwhile = nil, nil, nil
	f.mu.Unlock()
	if meanwhile != nil {
		meanwhile()
	}
	if before != nil {
		return 0, before
	}
	revision, err := f.Store.Commit(ctx, txn)
	if err == nil && after != nil {
		return 0, after
	}
	return revision, err
}

// ofACall reports whether a transaction commits what a host requested. Such a transaction contains
// the audit row of a decision.
func ofACall(txn store.Txn) bool {
	return slices.ContainsFunc(txn.Then, func(op store.Op) bool {
		var r server.Row
		return strings.HasPrefix(op.Key, server.AuditPrefix) && json.Unmarshal(op.Value, &r) == nil && r.Outcome != server.Changed
	})
}
