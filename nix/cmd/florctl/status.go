package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/fleet"
)

// again is how often --watch requests the reports: hosts look for changes
// every ten seconds.
const again = 5 * time.Second

// fleet.ErrAttention ends florctl with 2.
func newStatusCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [FLAKE]",
		Short: "Print how the hosts of the flake stand, by what they report",
		Long: `Print of each host of the flake what it runs, what it lacks, and what ends soon, by its
last report: hosts report every five minutes, and on every change. Exits 2 when a host
needs attention, and 0 otherwise.`,
	}
	from, reach := source(cmd), via(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print JSON, with all that each host reports")
	watch := cmd.Flags().Bool("watch", false, "print it again every five seconds")
	cmd.MarkFlagsMutuallyExclusive("json", "watch")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, err := from(args)
		if err != nil {
			return err
		}
		s, err := evaluated(cmd, src, compile.Read)
		if err != nil {
			return err
		}
		c, err := reach(s.Topology)
		if err != nil {
			return err
		}
		if *watch {
			return watchFleet(cmd, s, c.Providers)
		}
		hosts, err := readFleet(cmd.Context(), s, c.Providers)
		if err != nil {
			return err
		}
		if *asJSON {
			err = terminal.PrintJSON(cmd.OutOrStdout(), hosts)
		} else {
			err = fleet.Text(cmd.OutOrStdout(), hosts, time.Now())
		}
		for _, h := range hosts {
			if err == nil && len(h.Notes) > 0 {
				return fleet.ErrAttention
			}
		}
		return err
	}
	return cmd
}

// readFleet joins the newest report of each host that any of the providers has.
func readFleet(ctx context.Context, s compile.Snapshot, providers client.Providers) ([]fleet.Host, error) {
	newest, err := providers.Reports(ctx)
	if err != nil {
		return nil, err
	}
	return fleet.Join(s, newest, time.Now())
}

// watchFleet prints the table until it is interrupted.
func watchFleet(cmd *cobra.Command, s compile.Snapshot, providers client.Providers) error {
	ctx := cmd.Context() // ends when florctl is interrupted
	for {
		hosts, err := readFleet(ctx, s, providers)
		if ctx.Err() != nil {
			return nil
		}
		fmt.Fprint(os.Stdout, "\x1b[H\x1b[2J")
		if err == nil {
			err = fleet.Text(cmd.OutOrStdout(), hosts, time.Now())
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
}
