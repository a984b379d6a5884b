package distribution

import (
	"context"
	"log/slog"
	"time"

	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// relistEvery is how often the two are compared.
const relistEvery = time.Second

// relist offers the revocation list that is in force on this host where the archive has an
// older one, since its store was restored: hosts that have none yet get no older one.
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
		Cluster: policy.Cluster, Keys: policy.Trust.SigningKeys,
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
