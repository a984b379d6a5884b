package published

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/distribution"
)

// former returns the documents that a provider needs for a rollout in addition to the new
// documents. These are the policies that provider hosts use during the rollout, if the policies
// change, and the documents of the version published before, in case hosts must go back.
func (c Cluster) former(ctx context.Context, r *record, next map[string][]document.Document, last int64, digest string, by *round) ([]archive.SignedTree, error) {
	serial := archive.SignedTree(next).Head().Serial
	if !c.rolledOut(next) || last == 0 || last >= serial { // the same version again, or one that is refused
		return nil, nil
	}
	if served := r.served().Serial; served > last && served < serial {
		return nil, fmt.Errorf("the newest version of the provider is %d, but %d was published: the provider lost or hides it, so florctl does not know the version to go back to: pass --at-once", last, served)
	}
	back, was, err := c.again(ctx, r, last, serial+1, digest)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c.Err, "if the rollout fails, hosts go back to version %d, revision %.12s\n", last, cmp.Or(was.Rev, "unknown"))
	if err := r.add(version{Serial: serial + 1, Rev: was.Rev, Digest: archive.SignedTree(back).Digest(), Back: true}); err != nil {
		return nil, err
	}
	// Hosts that go back verify later documents with these.
	if err := archive.RejectUnpinned(back, by.key.ToPublicKey()); err != nil {
		return nil, err
	}
	bridge, err := archive.Bridge(next, back, serial-1)
	if err != nil {
		return nil, err
	}
	var trees []archive.SignedTree
	for _, documents := range []map[string][]document.Document{bridge, back} {
		if len(documents) == 0 {
			continue
		}
		tree, err := archive.SignWith(documents, time.Now(), by.sign)
		if err == nil && by.key.only == "" {
			err = tree.CheckSigned()
		}
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
	}
	return trees, nil
}

// rolledOut reports whether the policy of the host that serves documents has waves.
func (c Cluster) rolledOut(next map[string][]document.Document) bool {
	return slices.ContainsFunc(c.Topology.Providers[distribution.Name].Hosts, func(host string) bool {
		return slices.ContainsFunc(next[host], func(d document.Document) bool {
			return d.Envelope.Kind == document.DocPolicy && d.Policy().Rollout != nil
		})
	})
}
