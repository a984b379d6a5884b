package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
)

func newUnitsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "units [FLAKE] --host H",
		Short: "Print or write the systemd units of a host",
		Long: `Print the services of a host, and the systemd units that Florete needs there. The command reads
the flake, and does not contact the host. For each service, it prints:

  - the address at which the service listens
  - the units of the service
  - whether the topology or the compiler placed the service on the host

With --out, the command writes the units to a directory instead, so that you can install them
without florctl:

  - the unit files, the same as those of the NixOS module
  - florete.sysusers, the accounts for systemd-sysusers
  - florete.sysctl, the kernel settings for systemd-sysctl

If you run the command again, it removes the florete-* files that the host no longer needs. If
the topology gives the host an instance, the names begin with florete_NAME.`,
	}
	host := cmd.Flags().String("host", "", "name of the `HOST` to print the units of")
	out := cmd.Flags().String("out", "", "write the units to this `DIR`, and print nothing")
	bin := cmd.Flags().String("bin", "/usr/local/bin", "`DIR` on the host that contains flor and flor-provider, an absolute path")
	show := terminal.Shown(cmd, "print the units as a JSON object")
	cmd.MarkFlagRequired("host")
	cmd.MarkFlagsMutuallyExclusive("json", "out")
	return onSource(cmd, func(src compile.Source) error {
		if !filepath.IsAbs(*bin) {
			return fmt.Errorf("--bin %q: want an absolute path", *bin)
		}
		units, err := compile.ReadUnits(cmd.Context(), src, *host, *bin)
		switch {
		case err != nil:
			return err
		case *out != "":
			return units.Write(*out)
		}
		return show(struct {
			Host   string                  `json:"host"`
			Runs   map[string]compile.Runs `json:"runs"`
			Enable []string                `json:"enable"`
		}{*host, units.Runs, units.Enabled()}, units.Text)
	})
}
