package distribution

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// List returns the source from which the process of a kind reads the newest revocation list.
// Operators change that list in the store of the kind "config". If the processes on a host do not
// share a store, only the process of kind "config" can read it there. That process then writes each
// new list to the given file for the others, for which List returns nil. The argument s is the
// process's own store.
func List(kind string, s store.Store, file string, log *slog.Logger) *server.ListSource {
	l := &server.ListSource{Key: archive.RevocationsKey, Decode: archive.DecodeRevocations}
	config, shared := store.Sibling(s, Name)
	l.Shared = shared
	switch {
	case kind == Name:
		l.Store = s
		if !shared {
			l.Taken = leave(file, log)
		}
	case shared:
		l.Store, l.Tree = config, Name
	default:
		return nil
	}
	return l
}

// leave returns a function that writes each revocation list to a file. Everybody on this host can
// read the file, because the list is signed and not secret. A file that an earlier process wrote
// may stay, because readers ignore a list that is older than their own.
func leave(file string, log *slog.Logger) func(*trust.Revocations) {
	return func(list *trust.Revocations) {
		if list == nil {
			return
		}
		b, err := json.Marshal(list.AsSigned())
		if err == nil {
			err = atomicfile.File(file, b, 0o644)
		}
		if err != nil {
			log.Error("the processes of other kinds learn of the newest revocation list by this host's activation alone", "error", err)
		}
	}
}

// relistEvery is the interval at which relist compares the two revocation lists.
const relistEvery = time.Second

// relist offers hosts the newest revocation list again after a restore of the store. The archive
// may then have an older list than the one in force on this host. In that case relist puts the list
// in force into the archive, so that hosts without a list do not receive the older one.
type relist struct {
	archive  archive.Archive
	policies *server.Policies
	log      *slog.Logger
}

func (r relist) run(ctx context.Context) {
	journal.Every(ctx, relistEvery, r.log, r.compare, "the revocation list in force here is not offered")
}

func (r relist) compare(ctx context.Context) error {
	here := r.policies.Revoked()
	if here == nil {
		return nil
	}
	last, err := r.archive.Revocations(ctx)
	if err != nil || last.Number >= here.Number {
		return err
	}
	policy := r.policies.Current()
	_, _, err = r.archive.SetRevocations(ctx, here.AsSigned(), archive.ListTerms{
		Cluster: policy.Cluster, Signers: policy.Trust.Signers(),
		Record: func(last, next *trust.Revocations) []store.Op {
			rows := control.RevokedRows(server.Row{Time: time.Now().UTC(), Caller: "this host, on which it is in force", Kind: Name}, last, next)
			for i := range rows {
				rows[i].Outcome = server.Changed
			}
			return server.Ops(rows)
		},
	})
	return err
}
