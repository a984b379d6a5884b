package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/compile"
)

func newUnitsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "units [FLAKE] --host H",
		Short: "Print or write the systemd units of a host",
		Long: `Print the services on a host, with the address on which each listens, its units, and whether the
topology or the compiler placed it there; and the units of Florete that are enabled on the host.

With --out, write Florete's units to a directory, as the NixOS module has them; the accounts to
florete.sysusers, for systemd-sysusers; and the kernel settings to florete.sysctl, for
systemd-sysctl. Files called florete-* that an earlier call wrote there and that the host no longer
needs are removed. Where the topology gives the host an instance, names begin with florete_NAME.`,
	}
	host := cmd.Flags().String("host", "", "`HOST` to print the units of")
	out := cmd.Flags().String("out", "", "write the units into this `DIR`")
	bin := cmd.Flags().String("bin", "/usr/local/bin", "`DIR` of flor and flor-provider on the host")
	show := shown(cmd, "print JSON")
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
