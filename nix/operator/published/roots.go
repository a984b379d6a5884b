package published

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/fleet"
)

// rootsOf returns the fingerprints of the roots in documents.
func rootsOf(documents map[string][]document.Document) []string {
	for _, all := range documents {
		for _, d := range all {
			if d.Envelope.Kind != document.DocManifest {
				continue
			}
			m := d.Manifest()
			if roots, err := trust.NewRoots(m.TrustDomain, m.Trust.Roots); err == nil {
				return roots.Fingerprints()
			}
		}
	}
	return nil
}

// rootsLeft returns an error if roots does not include a root to which certificates of hosts lead.
func (c Cluster) rootsLeft(roots []string, reports map[string]hostreport.Kept, without []string) error {
	by, err := fleet.ReadRoots(c.Topology, reports, without, time.Now())
	if err == nil {
		err = by.Left(roots)
	}
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.Topology.Name, err)
	}
	return nil
}

// CheckRootsKept returns an error if a cluster contains none of the roots that were published last.
// The last argument is the path of the signing key's record, which contains the published roots. If
// it is empty, the last commit counts as published or, if there are no uncommitted changes, the
// commit before it.
//
// If there is nothing to compare with, for example because the flake is not in a git clone or has
// several clusters, CheckRootsKept returns nil.
func CheckRootsKept(ctx context.Context, src compile.Source, signed string) error {
	is, err := compile.ReadTopology(ctx, src)
	if err != nil {
		if signed != "" {
			return fmt.Errorf("--signed: %w", err)
		}
		return nil
	}
	if signed != "" {
		if _, err := os.Stat(signed); err != nil {
			return fmt.Errorf("--signed: %w", err)
		}
		r, err := openRecord(signed, is.Name)
		if err == nil {
			err = compile.CheckFingerprintsKept(r.roots(), compile.Fingerprints(is.Trust.Roots))
		}
		if err != nil {
			return fmt.Errorf("cluster %s: %w", is.Name, err)
		}
		return nil
	}
	tree, err := compile.ReadTree(ctx, src)
	if err != nil {
		return nil
	}
	revs := []string{"HEAD"}
	if tree.Revision != "" {
		revs = []string{"HEAD~", "HEAD~2"} // the last commit may have reverted the one before
	}
	var lost error
	for _, rev := range revs {
		before, err := src.At(ctx, rev)
		if err != nil {
			break
		}
		was, err := compile.ReadTopology(ctx, before)
		if err != nil {
			break
		}
		if lost = compile.CheckRootsKept(was.Trust.Roots, is.Trust.Roots); lost == nil {
			return nil
		}
	}
	if lost != nil {
		return fmt.Errorf("cluster %s: %w", is.Name, lost)
	}
	return nil
}
