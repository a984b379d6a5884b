package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
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
	from := source(cmd)
	host := cmd.Flags().String("host", "", "whose units")
	out := cmd.Flags().String("out", "", "write them into this `DIR`")
	bin := cmd.Flags().String("bin", "/usr/local/bin", "`DIR` of the commands on the host")
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.MarkFlagRequired("host")
	cmd.MarkFlagsMutuallyExclusive("json", "out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, err := from(args)
		if err != nil {
			return err
		}
		if !filepath.IsAbs(*bin) {
			return fmt.Errorf("--bin %q: want an absolute path", *bin)
		}
		units, err := compile.ReadUnits(cmd.Context(), src, *host, *bin)
		switch {
		case err != nil:
			return err
		case *out != "":
			return units.Write(*out)
		case *asJSON:
			return terminal.PrintJSON(cmd.OutOrStdout(), struct {
				Host   string                  `json:"host"`
				Runs   map[string]compile.Runs `json:"runs"`
				Enable []string                `json:"enable"`
			}{*host, units.Runs, units.Enabled()})
		}
		return listUnits(cmd.OutOrStdout(), units)
	}
	return cmd
}

func listUnits(out io.Writer, units compile.Units) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(units.Runs) > 0 {
		fmt.Fprintln(w, "SERVICE\tLISTENS\tPROTOCOL\tUSER\tUNITS")
	}
	for _, name := range slices.Sorted(maps.Keys(units.Runs)) {
		s := units.Runs[name]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, cmp.Or(s.Upstream, "-"), s.Protocol, cmp.Or(s.User, "-"), cmp.Or(strings.Join(s.Units, " "), "-"))
		for _, port := range slices.Sorted(maps.Keys(s.Ports)) {
			p := s.Ports[port]
			fmt.Fprintf(w, "  :%s\t%s\t%s\t\t\n", port, cmp.Or(p.Upstream, "-"), strings.Join(p.Protocols, "+"))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "systemctl enable %s\n", strings.Join(units.Enabled(), " "))
	return err
}
