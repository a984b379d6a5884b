package compile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Report is all that is to be said about a cluster.
type Report struct {
	Cluster  string
	Hosts    int
	Faults   []Fault // errors and warnings, sorted by place
	members  validated
	together members
}

// Err is a *FaultsError when some of the faults are errors; when strict, when there are any.
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

// Validate tells everything that is wrong with a cluster, without compiling it, or, where
// none of several is named, with each of them and with what they say of the same host. What
// Nix cannot know, because it takes a clock and a parser, is known here: whether roots are
// any good now, and the bundles of foreign trust domains, and whether the flake's own files
// hold private keys.
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

// report is all that is to be said about the cluster of an answer.
func (a answer) report(files []Fault, now time.Time) Report {
	faults := slices.Concat(a.Faults, files, CheckRoots(a.Trust.Roots, a.Trust.Domain, now), CheckBundles(a.Validated.Federated, now))
	order(faults)
	return Report{a.Name, len(a.Hosts), faults, a.Validated, a.Together}
}

// whose is an error of the evaluation of several clusters with the name of the one that it is of.
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
