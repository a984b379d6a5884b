package published

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/fleet"
	"github.com/florete/florete/nix/operator/revocation"
)

// Revocations returns the newest revocation list that any provider has. If there is none, it
// returns nil.
func (c Cluster) Revocations(ctx context.Context) (*trust.Revocations, error) {
	all, err := c.lists(ctx)
	return newestOf(all), err
}

func newestOf(all []*trust.Revocations) (newest *trust.Revocations) {
	for _, list := range all {
		if list.Newer(newest) {
			newest = list
		}
	}
	return newest
}

// lists returns the revocation lists of all providers.
func (c Cluster) lists(ctx context.Context) (all []*trust.Revocations, err error) {
	var failed []error
	for _, at := range c.Providers {
		r, err := at.Revocations(ctx)
		if err != nil {
			failed = append(failed, err)
		}
		if err != nil || r.Number == 0 {
			continue
		}
		list, err := c.open(r.Signed)
		if err != nil {
			return nil, err
		}
		all = append(all, list)
	}
	return all, c.Providers.Failed(failed)
}

// open decodes a revocation list that a provider returned. One of the cluster's keys must have
// signed the list.
func (c Cluster) open(s trust.SignedRevocations) (*trust.Revocations, error) {
	list, err := s.Open()
	if err == nil {
		err = s.Verify(list, c.Topology.Name, signers.Any(c.Topology.Trust.SigningKeys...))
	}
	return list, err
}

// supply sends the newest revocation list to each provider that has an older list or none. A
// provider without the newest list may refuse to issue anything. The newest list is chosen among
// the list in the record r and the lists of all providers. A provider that does not answer is left
// out, because the calls that follow report it. supply also writes the newest list to the record,
// if the list continues the recorded one.
func (c Cluster) supply(ctx context.Context, r *record) error {
	own, err := r.list()
	if err != nil {
		return err
	}
	newest := own
	has := map[*client.Provider]int64{}
	for _, at := range c.Providers {
		is, err := at.Revocations(ctx)
		if err != nil {
			continue
		}
		has[at] = is.Number
		if is.Number == 0 {
			continue
		}
		list, err := c.open(is.Signed)
		if err != nil {
			return fmt.Errorf("%s: %w", at.Host, err)
		}
		if list.Newer(newest) {
			newest = list
		}
	}
	if newest == nil || newest.AsSigned().Verify(newest, c.Topology.Name, c.Topology.Trust.Signers()) != nil {
		return nil // the next list replaces a list with too few signatures
	}
	if newest.Newer(own) && newest.Follows(own) == nil {
		signed := newest.AsSigned()
		r.of().Revocations = &signed
		if err := r.save(); err != nil {
			return err
		}
	}
	for _, at := range c.Providers {
		number, answered := has[at]
		if !answered || number >= newest.Number {
			continue
		}
		if err := at.SetRevocations(ctx, newest.AsSigned()); err != nil {
			fmt.Fprintf(c.Err, "warning: %s has revocation list %d, and list %d could not be supplied: %v\n", at.Host, number, newest.Number, err)
			continue
		}
		fmt.Fprintf(c.Out, "%s: had revocation list %d, revocation list %d is supplied\n", at.Host, number, newest.Number)
	}
	return nil
}

// Continued returns the revocation list that the next list must continue: the newest among the
// lists at the providers and the last list that the key k has signed. If the newest does not
// continue one of the others, Continued returns an error.
func (c Cluster) Continued(ctx context.Context, k Key) (*trust.Revocations, error) {
	r, err := openRecord(k.record, c.Topology.Name)
	if err != nil {
		return nil, err
	}
	list, forks, err := c.continued(ctx, r)
	if err == nil && len(forks) > 0 {
		return nil, fmt.Errorf("%w: run that first", forks[0].why)
	}
	return list, err
}

// fork is a revocation list that the newest list does not continue.
type fork struct {
	list *trust.Revocations
	why  error
}

func (c Cluster) continued(ctx context.Context, r *record) (newest *trust.Revocations, forks []fork, err error) {
	all, err := c.lists(ctx)
	if err != nil {
		return nil, nil, err
	}
	own, err := r.list()
	if err != nil {
		return nil, nil, err
	}
	if own != nil {
		all = append([]*trust.Revocations{own}, all...)
	}
	for _, list := range all {
		if err := c.checkSigned(list, own); err != nil {
			return nil, nil, err
		}
	}
	newest = newestOf(all)
	seen := map[string]bool{}
	for _, other := range all {
		if why := newest.Follows(other); why != nil && !seen[other.Digest()] {
			seen[other.Digest()] = true
			forks = append(forks, fork{other, why})
		}
	}
	return newest, forks, nil
}

// checkSigned decides whether a revocation list may be continued. The argument own is the list in
// the record, or nil. A list from before the threshold was raised has too few signatures. If such a
// list is not in the record, checkSigned asks the operator, and returns an error if the operator
// does not accept the list.
func (c Cluster) checkSigned(list, own *trust.Revocations) error {
	weak := list.AsSigned().Verify(list, c.Topology.Name, c.Topology.Trust.Signers())
	if weak == nil || own != nil && list.Digest() == own.Digest() {
		return nil
	}
	revokes := describeRevoked(list)
	return c.Confirm(fmt.Sprintf("Revocation list %d revokes %s, and is not on the record of this key. %v.\nIs the list from before trust.threshold was raised, and is it to be continued?", list.Number, revokes, weak),
		fmt.Sprintf("%v; nothing is signed: if the list is from before trust.threshold was raised, answer on a terminal, or let the operator who signed it sign first, and name their record with --signed", weak))
}

// describeRevoked names at most ten entries of a revocation list.
func describeRevoked(list *trust.Revocations) string {
	var all []string
	for _, e := range list.Entries {
		all = append(all, cmp.Or(e.ID.Short(), strings.Join(e.EnrolKeyFingerprints, ", ")))
	}
	for _, s := range list.Certificates {
		all = append(all, "certificate "+s.Serial)
	}
	if n := len(all); n > 10 {
		all = append(all[:10], fmt.Sprintf("%d more", n-10))
	}
	return cmp.Or(strings.Join(all, ", "), "nothing")
}

// next makes and signs a revocation list that continues the newest list. The new list keeps all
// revocations that were not reinstated. The last argument is a function that makes the changes to
// the list.
func (c Cluster) next(ctx context.Context, by *round, r *record, valid time.Duration, force bool, with func(*trust.Revocations) error) (next *trust.Revocations, s trust.SignedRevocations, err error) {
	if err := by.key.CheckOf(c.Topology, "hosts"); err != nil {
		return nil, s, err
	}
	last, forks, err := c.continued(ctx, r)
	if err != nil {
		return nil, s, err
	}
	var others []*trust.Revocations
	for _, f := range forks {
		fmt.Fprintf(os.Stderr, "warning: %v: the next list revokes everything that either of them revokes\n", f.why)
		others = append(others, f.list)
	}
	ahead, host, err := c.ahead(ctx, last.InForce())
	if err != nil {
		return nil, s, err
	}
	if ahead != 0 && !force {
		return nil, s, fmt.Errorf("host %s reports revocation list %d, and providers have %d: copy %s from the host and run florctl revoke --supply; or pass --force, and lose what that list revokes",
			host, ahead, last.InForce(), hostdir.Instance("").State().Revocations())
	}
	next = revocation.Continue(last, others, ahead, c.Topology.Name, by.at, valid)
	if err := with(next); err != nil {
		return nil, s, err
	}
	s, err = revocation.SignWith(next, by.sign)
	return next, s, err
}

// put makes all providers offer a signed revocation list, and writes the list to the record r.
func (c Cluster) put(ctx context.Context, r *record, s trust.SignedRevocations) error {
	if err := c.offer(ctx, s); err != nil {
		return err
	}
	r.of().Revocations = &s
	return r.save()
}

// offer makes all providers offer a revocation list.
func (c Cluster) offer(ctx context.Context, s trust.SignedRevocations) error {
	return c.Providers.All(func(at *client.Provider) error { return at.SetRevocations(ctx, s) })
}

// ahead returns the highest number of a revocation list that a host reported, and the host. If no
// number is above that of the providers' list, ahead returns zero.
func (c Cluster) ahead(ctx context.Context, number int64) (highest int64, host string, err error) {
	reports, err := c.Providers.Reports(ctx)
	for name, received := range reports {
		r, unreadable := received.Decode()
		if unreadable == nil && r.Revocations != nil && r.Revocations.Number > max(number, highest) {
			highest, host = r.Revocations.Number, name
		}
	}
	return highest, host, err
}

// Lagging returns the hosts that do not use a revocation list yet, according to their reports, each
// with the reason. The second result is the number of hosts that should use it. Hosts that the list
// revokes are not counted, because they receive no lists.
func (c Cluster) Lagging(ctx context.Context, list *trust.Revocations) (late map[string]string, of int, err error) {
	late = map[string]string{}
	if list == nil {
		return late, 0, nil
	}
	reports, err := c.Providers.Reports(ctx)
	if err != nil {
		return nil, 0, err
	}
	for name, h := range c.Topology.Hosts {
		if slices.ContainsFunc(list.Entries, func(e trust.Revocation) bool { return e.ID == h.ID && (e.Suspended || e.ValidAfter.IsZero()) }) {
			continue
		}
		of++
		received, ok := reports[name]
		if !ok {
			late[name] = "it has never reported"
			continue
		}
		r, err := received.Decode()
		switch age := time.Since(received.Received.Time).Round(time.Second); {
		case err != nil:
			late[name] = fmt.Sprintf("its report of %s ago cannot be read: %v", age, err)
		case r.Revocations == nil:
			late[name] = fmt.Sprintf("it had none, %s ago", age)
		case r.Revocations.Number < list.Number:
			late[name] = fmt.Sprintf("it had list %d, %s ago", r.Revocations.Number, age)
		}
	}
	return late, of, nil
}

// await waits until a revocation list is in force on all hosts. If this takes too long, await
// returns an error that names the hosts without the list.
func (c Cluster) await(ctx context.Context, list *trust.Revocations, began time.Time, most time.Duration) error {
	for {
		late, of, err := c.Lagging(ctx, list)
		if err != nil {
			return err
		}
		took := time.Since(began)
		if len(late) > 0 && took < most {
			select {
			case <-time.After(listPoll):
				continue
			case <-ctx.Done():
			}
		}
		fmt.Fprintf(c.Out, "in force on %d of %d hosts after %s\n", of-len(late), of, took.Round(100*time.Millisecond))
		if err := printLagging(c.Out, late); err != nil {
			return err
		}
		if len(late) > 0 {
			return fleet.ErrAttention
		}
		return nil
	}
}

// listPoll is the interval at which reports are requested.
const listPoll = 300 * time.Millisecond

// renewal is a revocation list that a publication or rollback signs again. It revokes the same as
// the list before.
type renewal struct {
	list *trust.Revocations
	trust.SignedRevocations
	weak  bool // fewer keys signed the list before than the flake requires
	first bool // there was no list before
}

// renewed signs the revocation list again in three cases: if half of the time until the next update
// has passed, if too few keys signed the list, or if the list must name the documents that are
// about to be served. If there is no list, renewed signs the first one, which revokes nothing. In
// all other cases, and if hosts could not read a list that names documents, renewed returns nil.
func (c Cluster) renewed(ctx context.Context, by *round, r *record, serves naming) (*renewal, error) {
	list, err := c.Revocations(ctx)
	if err != nil {
		return nil, err
	}
	own, err := r.list()
	if err != nil {
		return nil, err
	}
	if own.Newer(list) {
		list = own
	}
	names, err := c.names(ctx, list, serves)
	if err != nil {
		return nil, err
	}
	lifetime, weak := revocation.FirstLifetime, false
	if list != nil {
		lifetime = list.NextUpdate.Sub(list.Signed.Time)
		weak = list.AsSigned().Verify(list, c.Topology.Name, c.Topology.Trust.Signers()) != nil
	}
	if !names && !weak && (list == nil || by.at.Sub(list.Signed.Time) < lifetime/2) {
		return nil, nil
	}
	next, s, err := c.next(ctx, by, r, lifetime, false, func(next *trust.Revocations) error {
		if names {
			next.NameDocuments(serves.NamedDocuments, by.at, serves.spacing)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(errors.New("the revocation list was not renewed"), err)
	}
	return &renewal{next, s, weak, list == nil}, nil
}

// renew makes all providers offer a renewed list.
func (c Cluster) renew(ctx context.Context, r *record, list *renewal) error {
	if list == nil {
		return nil
	}
	if err := c.put(ctx, r, list.SignedRevocations); err != nil {
		return errors.Join(errors.New("the revocation list was not renewed"), err)
	}
	if list.first {
		fmt.Fprintf(c.Out, "revocation list %d is offered to hosts. It is the first list and revokes nothing; the next one is due on %s\n", list.list.Number, list.list.NextUpdate.UTC().Format(time.DateOnly))
		return nil
	}
	fmt.Fprintf(c.Out, "revocation list %d is renewed and offered to hosts\n", list.list.Number)
	return nil
}
