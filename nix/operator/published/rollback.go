package published

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/providers/archive"
)

// Rollback selects the version of the documents to which a cluster returns.
type Rollback struct {
	Serial  int64
	Key     Key
	Digest  string   // digest of the version, if it is not recorded
	Without []string // hosts that may be left behind with a removed root

	// BeyondBudget offers the documents to all hosts at once, although this exceeds the disruption
	// budgets of the hosts.
	BeyondBudget bool
}

// Rollback publishes the documents of an earlier version again, as the newest version. If the
// requested version is the newest already, Rollback returns an error.
func (c Cluster) Rollback(ctx context.Context, to Rollback) error {
	versions, err := c.Versions(ctx)
	if err != nil {
		return err
	}
	if len(versions) == 0 || versions[0].Serial == to.Serial {
		return fmt.Errorf("serial %d is the newest version, want an older one: florctl versions", to.Serial)
	}
	record, err := openRecord(to.Key.record, c.Topology.Name)
	if err != nil {
		return err
	}
	by, err := to.Key.begin(c.Topology.Name, actRollback, c.Topology.Trust.Signers())
	if err != nil {
		return err
	}
	if to.Key.only == "" {
		if err := c.supply(ctx, record); err != nil {
			return err
		}
	}
	newest := versions[0].Serial
	next := max(by.at.Unix(), newest+1, record.newest()+1)
	if by.Serial != 0 { // of the operator who signed first
		if known, ok := record.version(by.Serial); by.Serial <= newest || by.Serial < record.newest() && (!ok || known.Served) {
			return fmt.Errorf("--with %s: signs serial %d, but serial %d was signed since: sign again", to.Key.others[0].file, by.Serial, max(newest, record.newest()))
		}
		next = by.Serial
	}
	by.Serial = next
	// Hosts verify with the manifest in force, and then with the published one.
	inForce, err := c.tree(ctx, newest)
	if err == nil {
		err = to.Key.CheckPinned(c.Topology.Name, inForce)
	}
	if err != nil {
		return err
	}
	documents, former, err := c.again(ctx, record, to.Serial, next, to.Digest)
	if err == nil {
		err = to.Key.CheckPinned(c.Topology.Name, documents)
	}
	if err != nil {
		return err
	}
	roots := rootsOf(documents)
	reports, err := c.Providers.Reports(ctx)
	if err == nil {
		err = c.rootsLeft(roots, reports, to.Without)
	}
	if err != nil {
		return err
	}
	tree, err := archive.SignWith(documents, time.Now(), by.sign)
	if err == nil && to.Key.only == "" {
		err = tree.CheckSigned()
	}
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.Topology.Name, err)
	}
	v := version{Serial: next, Rev: former.Rev, Digest: tree.Digest(), Roots: roots}
	list, err := c.renewed(ctx, by, record, namingOf(tree, record, v, true, by.at))
	if err != nil {
		return err
	}
	if to.Key.only != "" {
		if err := record.offered(v); err != nil {
			return err
		}
		return by.write(c.Out, fmt.Sprintf("cluster %s, back to serial %d as serial %d, %s", c.Topology.Name, to.Serial, next, v.Digest))
	}
	partly := c.serve(ctx, record, v, client.Importing{Back: to.Serial, AtOnce: c.rolledOut(inForce) || c.rolledOut(documents), BeyondBudget: to.BeyondBudget}, tree)
	if partly != nil && !errors.Is(partly, ErrPartly) {
		return partly
	}
	if err := c.renew(ctx, record, list); err != nil {
		return err
	}
	return partly
}

// again returns the documents of an earlier version with a new serial, so that they can be signed
// again. The version must be in the record, or an operator must give its digest.
func (c Cluster) again(ctx context.Context, r *record, serial, as int64, digest string) (map[string][]document.Document, version, error) {
	tree, err := c.tree(ctx, serial)
	if err != nil {
		return nil, version{}, err
	}
	v := version{Serial: serial, Rev: tree.Rev(), Digest: tree.Digest()}
	known, ok := r.version(serial)
	switch {
	case ok && known.Digest == v.Digest:
		v.Rev = known.Rev
	case ok:
		err = fmt.Errorf("version %d: the provider returned digest %s, but %s records %s: nothing is signed", serial, v.Digest, r.path, known.Digest)
	case digest == v.Digest:
	case digest != "":
		err = fmt.Errorf("version %d: the provider returned digest %s, want %s: nothing is signed", serial, v.Digest, digest)
	default:
		err = c.Confirm(fmt.Sprintf("Version %d, revision %.12s, %d hosts, %s, is not on the record of what this key signed here, %s.\nHas an operator published it, and is it to be signed again?", serial, cmp.Or(v.Rev, "unknown"), len(tree), v.Digest, r.path),
			fmt.Sprintf("version %d is not in %s, and nothing is signed: --digest %s accepts it", serial, r.path, v.Digest))
	}
	if err != nil {
		return nil, v, err
	}
	all := map[string][]document.Document{}
	for host, documents := range tree {
		for _, d := range documents {
			again, err := archive.Renumber(d, as)
			if err != nil {
				return nil, v, err
			}
			all[host] = append(all[host], again)
		}
	}
	return all, v, nil
}
