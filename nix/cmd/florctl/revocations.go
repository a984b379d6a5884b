package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/fleet"
	"github.com/florete/florete/nix/operator/published"
)

func newRevocationsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revocations [FLAKE]",
		Short: "Print revocations, and hosts that do not apply them yet",
		Long: `Print the revocation list that hosts are offered, and the hosts that last reported an older list.
Exits 2 when there are such hosts, or a newer list is due, and 0 otherwise.`,
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
			Hosts map[string]string  `json:"hosts"` // hosts that do not have the list yet, and the revision that they have
		}{list, late}, func(w io.Writer) error { return published.PrintRevocations(w, list, late, time.Now()) })
		if err == nil && (len(late) > 0 || list.Reported().Overdue(time.Now()) > 0) {
			err = fleet.ErrAttention
		}
		return err
	})
}
