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
	"github.com/florete/florete/providers/publish"
)

// naming is a version of the documents as a revocation list names it.
type naming struct {
	trust.NamedDocuments
	spacing time.Duration // see trust.Revocations.NameDocuments
}

// spacings is the number of earlier versions that a list names for each staleAfter, approximately.
const spacings = 24

// namingOf returns the naming of a version that is published at the time at. Hosts must have its
// documents after the longest time that their rollout may take, and providers.config.staleAfter.
func namingOf(tree publish.Tree, v version, atOnce bool, at time.Time) naming {
	var stale, rollout time.Duration
	for _, documents := range tree {
		for _, d := range documents {
			if d.Envelope.Kind == document.DocPolicy {
				if plan := d.Policy().Rollout; plan != nil && !atOnce {
					rollout = max(rollout, plan.Longest())
				}
			} else if need := d.Manifest().Documents(); need != nil {
				stale = max(stale, time.Duration(need.Renew.StaleAfter)*time.Second)
			}
		}
	}
	return naming{
		trust.NamedDocuments{Serial: v.Serial, Digest: v.Digest, Rev: tree.Rev(), Due: unixtime.Of(at.Add(rollout + stale))},
		stale / spacings,
	}
}

// names reports whether the next list is to name a version. It is not if the list names it already
// or a newer one, or if a host could not read a list that names documents. A list that names any is
// always continued by lists that do, so that no report of a provider can end that.
func (c Cluster) names(ctx context.Context, list *trust.Revocations, serves naming) (bool, error) {
	if list.Documents != nil {
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
