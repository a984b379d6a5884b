package compile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// Report is all that is to be said about a cluster.
type Report struct {
	Cluster string
	Hosts   int
	Faults  []Fault // errors and warnings, sorted by place
}

// Err is a *FaultsError when some of the faults are errors.
func (r Report) Err() error {
	if found := errorsOf(r.Faults); len(found) > 0 {
		return &FaultsError{r.Cluster, found}
	}
	return nil
}

// Validate tells everything that is wrong with a cluster, without compiling it. What
// Nix cannot know, because it takes a clock and a parser, is known here: whether its
// roots are any good now, and whether the flake's own files hold private keys.
func Validate(ctx context.Context, src Source, now time.Time) (Report, error) {
	a, err := ask(ctx, src, "validate = true;")
	var found *FaultsError
	if err != nil && !errors.As(err, &found) {
		return Report{}, err
	}
	tree, err := ReadTree(ctx, src)
	if err != nil {
		return Report{}, err
	}
	keys, err := tree.PrivateKeys()
	if err != nil {
		return Report{}, err
	}
	faults := append(append(a.Faults, keys...), checkRoots(a.Trust.Roots, a.Trust.Domain, now)...)
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.ID, b.ID)) })
	return Report{a.Name, len(a.Hosts), faults}, nil
}
