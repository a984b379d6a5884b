package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/fleet"
	"github.com/florete/florete/nix/operator/published"
)

func newRevocationsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revocations [FLAKE]",
		Short: "Print what is revoked, and the hosts that do not refuse it yet",
		Long: `Print the revocation list that hosts are offered, and the hosts whose last report has an
older one in force. Exits 2 where there are any, or a newer list is due, and 0 otherwise.`,
	}
	show := shown(cmd, "print JSON")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		list, err := c.Revocations(cmd.Context())
		if err != nil {
			return err
		}
		late, _, err := c.Lagging(cmd.Context(), list)
		if err != nil {
			return err
		}
		err = show(struct {
			List  *trust.Revocations `json:"list"`
			Hosts map[string]string  `json:"hosts"` // that have it not yet, and what they have
		}{list, late}, func(w io.Writer) error { return printList(w, list, late, time.Now()) })
		if err == nil && (len(late) > 0 || list.Reported().Overdue(time.Now()) > 0) {
			err = fleet.ErrAttention
		}
		return err
	})
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
	return published.PrintLagging(w, late)
}
