package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/florete/florete/providers/store"
)

func (s *Store) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	if err := check(txn); err != nil {
		return 0, err
	}
	if len(txn.Then) == 0 {
		return s.compare(ctx, txn)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	for {
		used, err := s.slot(ctx)
		if err != nil {
			return 0, err
		}
		revision, err := s.commit(ctx, txn, &used)
		if errors.Is(err, errSession) { // nothing was made
			s.drop(used.session)
			continue
		}
		return revision, err
	}
}

// errSession is the error for a slot that has changed since its client last wrote it.
var errSession = errors.New("the session of this client has ended")

// commit makes a transaction exactly once, even if etcd does not answer at first.
func (s *Store) commit(ctx context.Context, txn store.Txn, used *slot) (revision int64, err error) {
	known := false // what the slot holds
	defer func() {
		if known {
			s.put(*used)
		}
	}()
	err = s.request(ctx, func(bounded context.Context, _ bool) error {
		id := rand.Text()
		known = false
		r, err := s.txn(bounded, txn, *used, id)
		switch {
		case err == nil && r.Succeeded:
			revision, known = r.Header.Revision, true
			if r.wrote {
				used.at = revision
			}
			return nil
		case err == nil:
			if r.slot != used.at {
				return errSession
			}
			known = true
			return fmt.Errorf("%s: %w", conditions(txn), store.ErrConflict)
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			if live, lookup := s.lives(bounded, used.session); lookup != nil {
				return lookup
			} else if !live {
				return errSession
			}
			known = true
			return fmt.Errorf("lease: %w", store.ErrNotFound)
		case !unanswered(err) || errors.Is(err, rpctypes.ErrNoLeader): // refused, not begun
			known = true
			return err
		}
		// The caller may be gone, but its transaction must be resolved.
		made, at, lookup := s.resolve(context.WithoutCancel(ctx), used, id)
		switch {
		case lookup != nil:
			return final{fmt.Errorf("a transaction has no answer, and may have been made: %w", lookup)}
		case made:
			revision, known = at, true
			return nil
		}
		known = true
		return err // not made: again
	})
	var f final
	if errors.As(err, &f) {
		err = f.error
	}
	return revision, err
}

// final is an error after which a request is not tried again.
type final struct{ error }

// result is the result of a transaction that etcd answered.
type result struct {
	*clientv3.TxnResponse
	wrote bool  // the slot
	slot  int64 // where it failed: the revision that wrote the slot
}

// txn tries once to make a transaction.
func (s *Store) txn(ctx context.Context, txn store.Txn, used slot, id string) (r result, err error) {
	mark := clientv3.OpPut(used.key, id, clientv3.WithLease(clientv3.LeaseID(used.session)))
	var ops []clientv3.Op
	var absent []clientv3.Cmp
	puts := false
	for _, op := range txn.Then {
		if op.Delete {
			ops = append(ops, clientv3.OpDelete(s.key(op.Key)))
			absent = append(absent, clientv3.Compare(clientv3.CreateRevision(s.key(op.Key)), "=", 0))
			continue
		}
		puts = true
		ops = append(ops, clientv3.OpPut(s.key(op.Key), string(op.Value), clientv3.WithLease(clientv3.LeaseID(op.Lease))))
	}
	ops = append(ops, mark)
	if !puts { // deletes what is there, if anything is, and makes no revision otherwise
		ops = []clientv3.Op{clientv3.OpTxn(absent, nil, ops)}
	}
	cmps := append(s.cmps(txn.If), clientv3.Compare(clientv3.ModRevision(used.key), "=", used.at))
	r.TxnResponse, err = s.client.Txn(ctx).If(cmps...).Then(ops...).Else(clientv3.OpGet(used.key, clientv3.WithKeysOnly())).Commit()
	if err != nil {
		return r, err
	}
	if !r.Succeeded {
		for _, kv := range r.Responses[0].GetResponseRange().Kvs {
			r.slot = kv.ModRevision
		}
		return r, nil
	}
	r.wrote = puts || !r.Responses[0].GetResponseTxn().Succeeded
	return r, nil
}

func (s *Store) cmps(conds []store.Cond) (cmps []clientv3.Cmp) {
	for _, c := range conds {
		at := s
		if c.Tree != "" {
			at = s.sibling(c.Tree)
		}
		cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(at.key(c.Key)), "=", c.Modified))
	}
	return cmps
}

// compare commits a transaction that changes nothing.
func (s *Store) compare(ctx context.Context, txn store.Txn) (revision int64, err error) {
	err = s.request(ctx, func(ctx context.Context, _ bool) error {
		r, err := s.client.Txn(ctx).If(s.cmps(txn.If)...).Commit()
		if err != nil {
			return err
		}
		if !r.Succeeded {
			return fmt.Errorf("%s: %w", conditions(txn), store.ErrConflict)
		}
		revision = r.Header.Revision
		return nil
	})
	return revision, err
}

// lives reports whether a lease exists in etcd.
func (s *Store) lives(ctx context.Context, id store.LeaseID) (bool, error) {
	r, err := s.client.TimeToLive(ctx, clientv3.LeaseID(id))
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return false, nil
	}
	return err == nil && r.TTL > 0, err
}

func conditions(txn store.Txn) string {
	switch n := len(txn.If); n {
	case 0:
		return "no condition"
	case 1:
		return fmt.Sprintf("key %q: not at revision %d", txn.If[0].Key, txn.If[0].Modified)
	default:
		return fmt.Sprintf("key %q and %d others: not all at the revisions of the conditions", txn.If[0].Key, n-1)
	}
}

// maxOps is the number of operations that a caller may put in one transaction. It is the limit of
// etcd, minus the operations that this package adds.
const maxOps = 120

// check returns an error if a transaction is too large for etcd.
func check(txn store.Txn) error {
	size, touched := 0, map[string]bool{}
	for _, op := range txn.Then {
		if touched[op.Key] {
			return fmt.Errorf("key %q: changed twice in one transaction", op.Key)
		}
		touched[op.Key] = true
		size += len(op.Key) + len(op.Value)
	}
	switch {
	case len(txn.Then) > maxOps || len(txn.If) > maxOps:
		return fmt.Errorf("a transaction of %d changes and %d conditions: etcd takes %d of each: make several", len(txn.Then), len(txn.If), maxOps)
	case size > limit:
		return fmt.Errorf("a transaction of %d KiB, the first key %q: etcd takes %d KiB: make several", size>>10, txn.Then[0].Key, limit>>10)
	}
	return nil
}
