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
		Long: `Install the programs, systemd units and documents of hosts, over SSH as root. Run this command
for a new host, or when the programs or units of a host change. If only documents change,
florctl publish is enough.

A host that is in the flake's nixosConfigurations is switched with nixos-rebuild. On any other
host, florctl installs a bundle. florctl then waits until each host reports the new documents to
a provider.

A host that does not report within --timeout goes back to its previous state by itself. A NixOS
host does so only if services.florete.confirm.enable is set. To undo a deployment, deploy
the previous revision of the flake.

Hosts with a disruption budget (rollout.atOnce) wait until the budget permits a change. To
deploy these hosts, you need the right to publish.

florctl connects to a host with the settings in ssh_config(5). If these name no address for the
host, florctl uses the address in the flake. The host must have the SSH host key that the flake
declares.

Some hosts cannot get their first certificate by themselves: the first provider host, and a host
that joins with a token before its device is approved. florctl refuses to deploy such a host.
Install it with florctl bundle or nixos-rebuild, as the error message says.

With --new, florctl installs nothing. It prepares a directory for nixos-anywhere --extra-files
that contains the SSH host key of the new machine.

The command exits 1 if a host failed.`,
	}
	from, reach := source(cmd), via(cmd)
	flake := cmd.Flags().String("flake", ".", "directory or reference of the `FLAKE` that describes the cluster")
	timeout := cmd.Flags().Duration("timeout", 5*time.Minute, "time in which a host must report the new documents, before it goes back")
	jobs := cmd.Flags().Int("jobs", 4, "`NUMBER` of hosts to deploy at the same time")
	bin := cmd.Flags().String("bin", "", "`DIR` that contains the programs flor and flor-provider to install (default: the directory of florctl)")
	extra := cmd.Flags().String("new", "", "prepare this `DIR` for a machine that is not installed yet, and print the next steps")
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
