package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/client"
)

func newRevocationsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revocations [FLAKE]",
		Short: "Print what is revoked, and the hosts that do not refuse it yet",
		Long: `Print the revocation list that hosts are offered, and the hosts whose last report has an
older one in force. Exits 2 where there are any, or a newer list is due, and 0 otherwise.`,
	}
	cluster := ofCluster(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := cluster(cmd.Context(), args)
		if err != nil {
			return err
		}
		list, err := p.newestList(cmd.Context())
		if err != nil {
			return err
		}
		late, _, err := p.lagging(cmd.Context(), list)
		if err != nil {
			return err
		}
		if *asJSON {
			err = terminal.PrintJSON(cmd.OutOrStdout(), struct {
				List  *trust.Revocations `json:"list"`
				Hosts map[string]string  `json:"hosts"` // that have it not yet, and what they have
			}{list, late})
		} else {
			err = printList(cmd.OutOrStdout(), list, late, time.Now())
		}
		if err == nil && (len(late) > 0 || list.Reported().Overdue(time.Now()) > 0) {
			err = errAttention
		}
		return err
	}
	return cmd
}

func printList(w io.Writer, list *trust.Revocations, late map[string]string, now time.Time) error {
	if list == nil {
		_, err := fmt.Fprintln(w, "nothing is revoked, nor ever was")
		return err
	}
	fmt.Fprintf(w, "revocation list %d of %s; the next one is due on %s\n", list.Number, list.Signed.UTC().Format(time.RFC3339), list.NextUpdate.UTC().Format(time.DateOnly))
	if due := list.Reported().Overdue(now); due > 0 {
		fmt.Fprintf(w, "that was %s ago: florctl revoke --renew\n", due)
	}
	t := terminal.NewTable(w, "REVOKED", "ISSUED BEFORE", "SSH HOST KEYS")
	for _, e := range list.Entries {
		what, before := e.ID.Short(), "whenever"
		if e.ID.IsZero() {
			what, before = "-", "-"
		} else if e.Suspended {
			before = "suspended"
		} else if !e.ValidAfter.IsZero() {
			before = e.ValidAfter.UTC().Format(time.RFC3339)
		}
		t.Row(what, before, strings.Join(e.EnrolKeyFingerprints, " "))
	}
	for _, c := range list.Certificates {
		t.Row("certificate "+c.Serial, "whenever", "")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return printLagging(w, late)
}

func printLagging(w io.Writer, late map[string]string) error {
	for _, host := range slices.Sorted(maps.Keys(late)) {
		if _, err := fmt.Fprintf(w, "not yet in force on %s: %s\n", host, terminal.Text(late[host])); err != nil {
			return err
		}
	}
	return nil
}

// newestList is the list with the highest number that any provider offers, nil for none.
func (p published) newestList(ctx context.Context) (*trust.Revocations, error) {
	all, err := p.lists(ctx)
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

// lists returns the lists that providers offer.
func (p published) lists(ctx context.Context) (all []*trust.Revocations, err error) {
	var failed []error
	for _, at := range p.providers {
		r, err := at.Revocations(ctx)
		if err != nil {
			failed = append(failed, err)
		}
		if err != nil || r.Number == 0 {
			continue
		}
		list, err := r.Signed.Open()
		if err == nil {
			err = r.Signed.Verify(list, p.topology.Name, p.topology.Trust.SigningKeys)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, list)
	}
	return all, p.providers.Failed(failed)
}

// continued returns the list that the next one continues: the newest of any provider, or the one
// that was offered last from here, where no provider has one as new. It fails where that list does not
// follow another of these, unless heal is there, which is given both, and the reason.
func (p published) continued(ctx context.Context, r *signedRecord, heal func(list, other *trust.Revocations, why error)) (*trust.Revocations, error) {
	all, err := p.lists(ctx)
	if err != nil {
		return nil, err
	}
	own, err := r.list()
	if err != nil {
		return nil, err
	}
	if own != nil {
		all = append([]*trust.Revocations{own}, all...)
	}
	list, seen := newestOf(all), map[string]bool{}
	for _, other := range all {
		why := list.Follows(other)
		if why == nil || seen[other.Digest()] {
			continue
		}
		if heal == nil {
			return nil, fmt.Errorf("%w: run that first", why)
		}
		seen[other.Digest()] = true
		heal(list, other, why)
	}
	return list, nil
}

// offer has all providers offer a list.
func (p published) offer(ctx context.Context, s trust.SignedRevocations) error {
	return p.providers.All(func(at *client.Provider) error { return at.SetRevocations(ctx, s) })
}

// ahead is the highest number that a host reports above that of the providers' list, and which
// host does; zero for none.
func (p published) ahead(ctx context.Context, number int64) (highest int64, host string, err error) {
	reports, err := p.providers.Reports(ctx)
	for name, received := range reports {
		r, unreadable := received.Decode()
		if unreadable == nil && r.Revocations != nil && r.Revocations.Number > max(number, highest) {
			highest, host = r.Revocations.Number, name
		}
	}
	return highest, host, err
}

// lagging are the hosts on which a list is not in force by their last report, with what is, and of
// how many it should be. A host that the list revokes gets nothing any more.
func (p published) lagging(ctx context.Context, list *trust.Revocations) (late map[string]string, of int, err error) {
	late = map[string]string{}
	if list == nil {
		return late, 0, nil
	}
	reports, err := p.providers.Reports(ctx)
	if err != nil {
		return nil, 0, err
	}
	for name, h := range p.topology.Hosts {
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

// await waits until a list is in force on all hosts, and names those on which it is not.
func (p published) await(cmd *cobra.Command, list *trust.Revocations, began time.Time, most time.Duration) error {
	for {
		late, of, err := p.lagging(cmd.Context(), list)
		if err != nil {
			return err
		}
		took := time.Since(began)
		if len(late) > 0 && took < most {
			select {
			case <-time.After(listPoll):
				continue
			case <-cmd.Context().Done():
			}
		}
		fmt.Fprintf(cmd.OutOrStdout(), "in force on %d of %d hosts after %s\n", of-len(late), of, took.Round(100*time.Millisecond))
		if err := printLagging(cmd.OutOrStdout(), late); err != nil {
			return err
		}
		if len(late) > 0 {
			return errAttention
		}
		return nil
	}
}

// listPoll is how often reports are requested.
const listPoll = 300 * time.Millisecond

// renewList signs the list anew when half of the time until a newer one is due has passed.
func (p published) renewList(cmd *cobra.Command, key signature.SecretKey, r *signedRecord) error {
	list, err := p.newestList(cmd.Context())
	if err != nil || list == nil {
		return err
	}
	lifetime := list.NextUpdate.Sub(list.Signed.Time)
	if time.Since(list.Signed.Time) < lifetime/2 {
		return nil
	}
	next, err := p.nextList(cmd.Context(), key, r, lifetime, false, func(*trust.Revocations) error { return nil })
	if err != nil {
		return errors.Join(errors.New("the revocation list is not signed anew"), err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "revocation list %d, signed anew, is offered\n", next.Number)
	return nil
}
