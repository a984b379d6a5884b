package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/deploy"
)

func newDeployCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deploy HOST… [--flake FLAKE]",
		Short: "Install what the flake has of hosts over SSH, and undo it unless they report it",
		Long: `Copy the bundle of each host to it as root, over SSH, install it, and wait until the host
reports the new documents to a provider. A host that does not report them goes back by
itself, since it was armed before anything changed. A host among the flake's
nixosConfigurations is switched by nixos-rebuild, and goes back likewise where that has
services.florete.commitConfirm.enable.

SSH reaches a host as ssh_config(5) has it, else at its address in the topology; it must
prove the SSH host key that the flake declares. Exits 1 if one failed.

With --new, what a machine needs that is not installed yet: the SSH host key that it will
have, in a directory for nixos-anywhere --extra-files.`,
	}
	from, reach := source(cmd), via(cmd)
	flake := cmd.Flags().String("flake", ".", "flake of the cluster")
	timeout := cmd.Flags().Duration("timeout", 5*time.Minute, "how long a host may take to report before it goes back")
	jobs := cmd.Flags().Int("jobs", 4, "how many hosts at once")
	bin := cmd.Flags().String("bin", "", "`DIR` with flor and flor-provider for bundles (default: where florctl is)")
	extra := cmd.Flags().String("new", "", "make `DIR` for a machine that is not installed yet, and print what comes next")
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		src, err := from([]string{*flake})
		if err != nil {
			return err
		}
		if *extra != "" {
			return deploy.NewMachine(cmd.Context(), src, names, *extra, cmd.OutOrStdout())
		}
		if *jobs < 1 {
			return fmt.Errorf("--jobs %d: want at least 1", *jobs)
		}
		if *timeout < 30*time.Second || *timeout > 24*time.Hour {
			return fmt.Errorf("--timeout %s: want between 30s and 24h", *timeout)
		}
		done := terminal.Progress("evaluating the cluster")
		topology, hosts, err := deploy.Read(cmd.Context(), src, slices.Compact(slices.Sorted(slices.Values(names))), *bin)
		done()
		if err != nil {
			return err
		}
		c, err := reach(topology)
		if err != nil {
			return err
		}
		var lines sync.Mutex
		return deploy.Deployment{
			Flake: src.Ref(), Timeout: *timeout, Jobs: *jobs,
			Reports: c.Providers.Reports,
			Log: func(host, text string) {
				lines.Lock()
				defer lines.Unlock()
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", host, terminal.Text(text))
			},
		}.Run(cmd.Context(), hosts)
	}
	return cmd
}
