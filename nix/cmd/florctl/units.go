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
		Short: "List what a host runs and its systemd units, or write these",
		Long: `List what a host runs, and its systemd units: of each service on the host, whether the topology
names the host or the compiler chose it, where it listens and the units that the
topology names for it; and Florete's own units that are to be enabled there.

With --out, write the latter, those that the NixOS module gives the host, as files
into DIR; its accounts as DIR/florete.sysusers, for systemd-sysusers; and what it asks
of the kernel as DIR/florete.sysctl, for systemd-sysctl. What an earlier call left there
as florete-* and is no unit of the host is removed. Where the topology gives the host an
instance, all of them are called florete_NAME.`,
	}
	host := cmd.Flags().String("host", "", "whose units")
	out := cmd.Flags().String("out", "", "write them into this `DIR`")
	bin := cmd.Flags().String("bin", "/usr/local/bin", "`DIR` of the commands on the host")
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
