package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/deploy"
)

func newDeployCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deploy HOST… [--flake FLAKE]",
		Short: "Install bundles or NixOS systems on hosts over SSH",
		Long: `Install the state of the flake on hosts, over SSH as root, several at once. A host among the
flake's nixosConfigurations is switched by nixos-rebuild; to any other host florctl copies its
bundle and installs it. It then waits until the host reports the new documents to a provider.

A host that does not report within --timeout goes back to its former state by itself. A NixOS host
does so only if services.florete.commitConfirm.enable is set. Exits 1 if a host failed. To undo a
deployment, deploy the former revision of the flake.

Hosts with a disruption budget (rollout.atOnce) wait until it permits to change them. This needs
the right to publish.

A host without a certificate is refused at once if it cannot get one by itself: a host that joins
with a token before its device is approved, and the first provider host. Install those with florctl
bundle or nixos-rebuild, as the error says.

SSH reaches a host as ssh_config(5) says, and otherwise at its address in the topology. The host
must have the SSH host key that the flake declares.

With --new, florctl installs nothing: it prepares a directory for nixos-anywhere --extra-files with
the SSH host key of a machine that is not installed yet.`,
	}
	from, reach := source(cmd), via(cmd)
	flake := cmd.Flags().String("flake", ".", "`FLAKE` of the cluster")
	timeout := cmd.Flags().Duration("timeout", 5*time.Minute, "time in which a host must report before it goes back")
	jobs := cmd.Flags().Int("jobs", 4, "`NUMBER` of hosts to deploy at once")
	bin := cmd.Flags().String("bin", "", "`DIR` of flor and flor-provider (default: that of florctl)")
	extra := cmd.Flags().String("new", "", "prepare `DIR` for a machine that is not installed yet, and print the next steps")
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
		limited := map[string]bool{}
		for _, b := range topology.Budgets {
			for _, h := range b.Hosts {
				limited[h] = true
			}
		}
		var lines sync.Mutex
		return deploy.Deployment{
			Flake: src.Ref(), Timeout: *timeout, Jobs: *jobs,
			Reports: c.Providers.Reports, Limited: limited,
			Claim: func(ctx context.Context, host string, lasts time.Duration) (waits string, err error) {
				err = c.Providers.First(func(p *client.Provider) (err error) {
					waits, err = p.Claim(ctx, host, lasts)
					return err
				})
				return waits, err
			},
			Release: func(ctx context.Context, host string) error {
				return c.Providers.First(func(p *client.Provider) error { return p.Release(ctx, host) })
			},
			Log: func(host, text string) {
				lines.Lock()
				defer lines.Unlock()
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", host, terminal.Text(text))
			},
		}.Run(cmd.Context(), hosts)
	}
	return cmd
}
