package published

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/archive"
)

// naming is the entry that the next revocation list gets for a version of the documents.
type naming struct {
	trust.NamedDocuments
	spacing time.Duration // argument of trust.Revocations.NameDocuments
}

// spacings is the approximate number of earlier versions that a revocation list names for each
// period of length providers.config.staleAfter.
const spacings = 24

// namingOf returns the entry of the revocation list for a version. The argument at is the time at
// which the version is published. The entry is due after the longest time that the rollout may
// take, plus providers.config.staleAfter. The entry also names the documents in the record r to
// which hosts may go back.
func namingOf(tree archive.SignedTree, r *record, v version, atOnce bool, at time.Time) naming {
	var stale, rollout time.Duration
	var providers []string // hosts with a policy
	for host, documents := range tree {
		if slices.ContainsFunc(documents, func(d document.Document) bool { return d.Envelope.Kind == document.DocPolicy }) {
			providers = append(providers, host)
		}
	}
	back, _ := r.version(v.Serial + 1)
	if !back.Back {
		back.Serial = 0
	}
	for _, documents := range tree {
		for _, d := range documents {
			if d.Envelope.Kind == document.DocPolicy {
				if plan := d.Policy().Rollout; plan != nil && !atOnce {
					rollout = max(rollout, plan.Longest(providers))
				}
			} else if need := d.Manifest().Documents(); need != nil {
				stale = max(stale, time.Duration(need.Renew.StaleAfter)*time.Second)
			}
		}
	}
	return naming{
		trust.NamedDocuments{Serial: v.Serial, Digest: v.Digest, Rev: tree.Rev(), Due: unixtime.Of(at.Add(rollout + stale)), Back: back.Serial},
		stale / spacings,
	}
}

// names reports whether the next revocation list must name the version serves. This is not
// necessary if the present list names this version or a newer one. If there is no list, or it names no
// versions, the next list may name one only if every host that reports can read it. If the present
// list names a version, names does not look at reports, because a provider could forge them to end
// the naming.
func (c Cluster) names(ctx context.Context, list *trust.Revocations, serves naming) (bool, error) {
	if list != nil && list.Documents != nil {
		return list.Documents.Serial < serves.Serial, nil
	}
	reports, err := c.Providers.Reports(ctx)
	if err != nil {
		return false, err
	}
	for _, name := range slices.Sorted(maps.Keys(reports)) {
		_, declared := c.Topology.Hosts[name]
		if r, err := reports[name].Decode(); err == nil && declared && trust.NamesDocuments.Newer(r.Format) {
			fmt.Fprintf(c.Err, "warning: the revocation list does not name the newest documents, because host %s understands formats up to %s: upgrade its programs and publish again\n", name, r.Format)
			return false, nil
		}
	}
	return true, nil
}
