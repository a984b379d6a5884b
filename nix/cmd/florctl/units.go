package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/compile"
)

func newUnitsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "units [FLAKE] --host H --out DIR",
		Short: "Write the systemd units of a host",
		Long: `Write the systemd units of a host, those that the NixOS module gives it, as files
into DIR; its accounts as DIR/florete.sysusers, for systemd-sysusers; and what it asks
of the kernel as DIR/florete.sysctl, for systemd-sysctl. What an earlier call left there
as florete-* and is no unit of the host is removed. Where the topology gives the host a
instance, all of them are called florete_NAME.`,
	}
	from := source(cmd)
	host := cmd.Flags().String("host", "", "whose units")
	out := cmd.Flags().String("out", "", "write them into this `DIR`")
	bin := cmd.Flags().String("bin", "/usr/local/bin", "`DIR` of the commands on the host")
	cmd.MarkFlagRequired("host")
	cmd.MarkFlagRequired("out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, err := from(args)
		if err != nil {
			return err
		}
		if !filepath.IsAbs(*bin) {
			return fmt.Errorf("--bin %q: want an absolute path", *bin)
		}
		units, err := compile.ReadUnits(cmd.Context(), src, *host, *bin)
		if err != nil {
			return err
		}
		return units.Write(*out)
	}
	return cmd
}
