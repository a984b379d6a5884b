package plan

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/florete/florete/nix/operator/compile"
)

// Since returns the changes of a cluster from the git revision rev of the source src to the source
// now. If the flake did not contain the cluster at that revision, everything in the cluster is new.
func Since(ctx context.Context, rev string, src, now compile.Source) (p Plan, err error) {
	old, err := src.At(ctx, rev)
	if err != nil {
		return p, err
	}
	var before, after compile.Snapshot
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() (err error) {
		before, err = snapshot(ctx, old)
		var none *compile.NoClusterError
		if errors.As(err, &none) {
			// The cluster is new in the flake, and so is everything in it.
			before = compile.Snapshot{Topology: compile.Topology{Name: src.Cluster}}
			before.Inputs, err = compile.ReadInputs(ctx, old)
		}
		if err != nil {
			err = fmt.Errorf("at %s: %w\ncompare with a commit that had no faults, such as --from %s~1", rev, err, rev)
		}
		return err
	})
	work.Go(func() (err error) {
		after, err = snapshot(ctx, now)
		return err
	})
	if err := work.Wait(); err != nil {
		return p, err
	}
	return Compare(before, after)
}

// snapshot returns the cluster, together with the locked inputs of its flake.
func snapshot(ctx context.Context, src compile.Source) (s compile.Snapshot, err error) {
	if s, err = compile.Read(ctx, src); err == nil {
		s.Inputs, err = compile.ReadInputs(ctx, src)
	}
	return s, err
}
