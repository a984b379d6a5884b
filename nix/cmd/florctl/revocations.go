package main

import (
	"io"
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
		Short: "Print the revocation list, and hosts that do not apply it yet",
		Long: `Print the revocation list: the identities, keys and certificates that are revoked or suspended.
The command also prints the hosts whose last report names an older list.

The command changes nothing. It exits 2 if a host has an older list, or if the list must soon be
signed again. Otherwise it exits 0.`,
	}
	show := terminal.Shown(cmd, "print a JSON object with the signed list, and with the hosts that have an older list")
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
