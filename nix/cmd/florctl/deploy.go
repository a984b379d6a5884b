package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/bundle"
	"github.com/florete/florete/nix/operator/compile"
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
			return newMachine(cmd, src, names, *extra)
		}
		if *jobs < 1 {
			return fmt.Errorf("--jobs %d: want at least 1", *jobs)
		}
		if *timeout < 30*time.Second || *timeout > 24*time.Hour {
			return fmt.Errorf("--timeout %s: want between 30s and 24h", *timeout)
		}
		topology, hosts, err := toDeploy(cmd.Context(), src, slices.Compact(slices.Sorted(slices.Values(names))), *bin)
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

// toDeploy reads what hosts are to run.
func toDeploy(ctx context.Context, src compile.Source, names []string, bin string) (t compile.Topology, hosts []deploy.Host, err error) {
	defer progress("evaluating the cluster")()
	if t, err = compile.ReadTopology(ctx, src); err != nil {
		return t, nil, err
	}
	c, err := compile.Compile(ctx, src, names...)
	if err != nil {
		return t, nil, err
	}
	nixos, err := compile.NixOSHosts(ctx, src)
	if err != nil {
		return t, nil, err
	}
	if bin == "" {
		self, err := os.Executable()
		if err != nil {
			return t, nil, err
		}
		bin = filepath.Dir(self)
	}
	for _, name := range names {
		h := deploy.Host{Name: name, Topology: t.Hosts[name], Documents: c.Documents[name]}
		if !slices.Contains(nixos, name) {
			b := bundle.Bundle{Documents: h.Documents}
			if b.Programs, err = bundle.ReadPrograms(bin, bundle.Needed(b.Documents), c.Systems[name]); err != nil {
				return t, nil, err
			}
			if b.Units, err = compile.ReadUnits(ctx, src, name, bundle.BinTar(c.Instances[name])); err != nil {
				return t, nil, err
			}
			h.Bundle = &b
		}
		hosts = append(hosts, h)
	}
	return t, hosts, nil
}
