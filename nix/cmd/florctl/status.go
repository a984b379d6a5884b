package main

import (
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/fleet"
)

func newStatusCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [FLAKE]",
		Short: "Show the state of all hosts",
		Long: `Show for each host of the flake which documents it runs, which needs are not fulfilled and what
expires soon, from its last report. Hosts report every five minutes, and on every change. It also
shows devices that wait to be approved as a host and, with --via ssh, config providers that do not
run. Exits 2 when a host needs attention, and 0 otherwise. Nothing is changed.`,
	}
	reach := via(cmd)
	show := shown(cmd, "print JSON, with the full report of each host")
	watch := cmd.Flags().Bool("watch", false, "print the table again every five seconds")
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
		err = show(hosts, func(w io.Writer) error { return fleet.Text(w, hosts, time.Now()) })
		if err == nil && slices.ContainsFunc(hosts, func(h fleet.Host) bool { return len(h.Notes) > 0 }) {
			err = fleet.ErrAttention
		}
		return err
	})
}
