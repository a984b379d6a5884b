package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/fleet"
)

func newStatusCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [FLAKE]",
		Short: "Show the state of all hosts",
		Long: `Show the state of all hosts in the flake, from the last report of each host. For each host, the
table shows the documents that it runs, the needs that are not fulfilled, and what expires soon.
A need is something that a host requests from a provider, such as a certificate. Hosts report
every five minutes, and after every change.

The command also shows devices that wait for florctl join approve. With --via ssh, it also shows
config providers that do not run. If trust.threshold is above one, its last line names the keys
that signed the newest version. It changes nothing. It exits 2 if a host needs attention, and
0 otherwise.`,
	}
	reach := via(cmd)
	show := terminal.Shown(cmd, "print the hosts as a JSON list, with the full report of each host")
	watch := cmd.Flags().Bool("watch", false, "print the table again every five seconds, until interrupted")
	cmd.MarkFlagsMutuallyExclusive("json", "watch")
	return onSource(cmd, func(src compile.Source) error {
		s, err := evaluated(cmd, src, compile.Read)
		if err != nil {
			return err
		}
		c, err := reach(s.Topology)
		if err != nil {
			return err
		}
		if *watch {
			return fleet.Watch(cmd.Context(), s, c.Providers, cmd.OutOrStdout(), os.Stdout)
		}
		hosts, err := fleet.Read(cmd.Context(), s, c.Providers)
		if err != nil {
			return err
		}
		err = show(hosts, func(w io.Writer) error {
			return errors.Join(fleet.Text(w, hosts, time.Now()), c.PrintSigning(cmd.Context(), w))
		})
		if err == nil && slices.ContainsFunc(hosts, func(h fleet.Host) bool { return len(h.Notes) > 0 }) {
			err = fleet.ErrAttention
		}
		return err
	})
}
