package compile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Report contains the faults that Validate found in one cluster.
type Report struct {
	Cluster  string
	Hosts    int
	Faults   []Fault // errors and warnings, sorted by place
	members  validated
	together members
}

// Err returns a *FaultsError with all faults of severity error. If strict is true, it includes
// warnings. If there are no such faults, Err returns nil.
func (r Report) Err(strict bool) error {
	found := errorsOf(r.Faults)
	if strict {
		found = r.Faults
	}
	if len(found) > 0 {
		return &FaultsError{r.Cluster, found}
	}
	return nil
}

// Validate returns all faults of a cluster. If src names no cluster and the flake has several,
// Validate checks each of them, and compares how they declare the same machines.
//
// Some checks need a clock or a parser, which Nix does not have, so Validate makes them itself:
// that roots and foreign bundles are valid at the time now, and that the flake contains no private
// keys. If the faults could be determined, the error is nil, even if there are some.
func Validate(ctx context.Context, src Source, now time.Time) ([]Report, error) {
	a, err := ask(ctx, src, "validate = true;")
	var found *FaultsError
	if err != nil && !errors.As(err, &found) {
		return nil, whose(ctx, src, err)
	}
	tree, err := ReadTree(ctx, src)
	if err != nil {
		return nil, err
	}
	files, err := tree.Faults(ctx)
	if err != nil {
		return nil, err
	}
	if a.Each == nil {
		return []Report{a.report(files, now)}, nil
	}
	var all []Report
	for i, one := range a.Each {
		src.Cluster = one.Clusters[i]
		if err := one.refusal(src); err != nil && !errors.As(err, &found) {
			return nil, fmt.Errorf("cluster %s: %w", src.Cluster, err)
		}
		all = append(all, one.report(files, now))
	}
	compareClusters(all)
	compareTrust(all)
	return all, nil
}

// report returns the report for the cluster that an answer of the compiler describes.
func (a answer) report(files []Fault, now time.Time) Report {
	faults := slices.Concat(a.Faults, files, CheckRoots(a.Trust.Roots, a.Trust.Domain, now), CheckBundles(a.Validated.Federated, now))
	order(faults)
	return Report{a.Name, len(a.Hosts), faults, a.Validated, a.Together}
}

// whose adds the name of the cluster that caused it to an error of evaluating several clusters.
func whose(ctx context.Context, src Source, err error) error {
	if src.Cluster != "" {
		return err
	}
	a, _ := ask(ctx, src, "")
	if len(a.Clusters) < 2 {
		return err
	}
	for _, src.Cluster = range a.Clusters {
		var found *FaultsError
		if _, err := ask(ctx, src, "validate = true;"); err != nil && !errors.As(err, &found) {
			return fmt.Errorf("cluster %s: %w", src.Cluster, err)
		}
	}
	return err
}

func order(faults []Fault) {
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.ID, b.ID)) })
}
