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
		Long: `Install what the flake describes on hosts, over SSH as root. Run this command for a new host, or
to change the programs and systemd units of a host. If only documents change, florctl publish is
enough.

If the flake's nixosConfigurations contain the host, the host is switched with nixos-rebuild. To
any other host, florctl copies its bundle, and installs it there. florctl deploys several hosts
at the same time. It then waits until each host reports the new documents to a provider.

A host that does not report within --timeout goes back to its previous state by itself. A NixOS
host does so only if services.florete.commitConfirm.enable is set. The command exits 1 if a host
failed. To undo a deployment, deploy the previous revision of the flake.

Hosts with a disruption budget (rollout.atOnce) wait until the budget permits to change them. This
needs the right to publish.

florctl connects to a host as ssh_config(5) says, and otherwise to the address of the host in
the flake. The host must have the SSH host key that the flake declares.

A host without a certificate is refused at once if it cannot get one by itself. This is the case
for the first provider host, and for a host that joins with a token before its device is
approved. Install such a host with florctl bundle or nixos-rebuild, as the error says.

With --new, florctl installs nothing. It prepares a directory for nixos-anywhere --extra-files,
with the SSH host key of a machine that is not installed yet.`,
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
