package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/bundle"
	"github.com/florete/florete/nix/operator/compile"
)

func newBundleCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle [FLAKE] --host H --out FILE",
		Short: "Pack a host's documents, units and programs for any Linux with systemd",
		Long: `Pack what a host runs on into one file: its documents, its units and static
programs (CGO_ENABLED=0). As tar.gz it holds install.sh, which installs, upgrades,
rolls back and removes; as deb it is a package named florete, or florete-NAME where
the topology gives the host an instance. The same host gives the same bytes.`,
	}
	host := cmd.Flags().String("host", "", "whose bundle")
	out := cmd.Flags().String("out", "", "write this `FILE`, - for standard output")
	format := cmd.Flags().String("format", "tar.gz", "tar.gz or deb")
	bin := cmd.Flags().String("bin", "", "`DIR` with flor and flor-provider (default: where florctl is)")
	cmd.MarkFlagRequired("host")
	cmd.MarkFlagRequired("out")
	return onSource(cmd, func(src compile.Source) error {
		installed, write := bundle.BinTar, bundle.Bundle.WriteTar
		switch *format {
		case "tar.gz":
		case "deb":
			installed, write = bundle.BinDeb, bundle.Bundle.WriteDeb
		default:
			return fmt.Errorf("--format %q: want tar.gz or deb", *format)
		}
		c, err := compile.Compile(cmd.Context(), src, *host)
		if err != nil {
			return err
		}
		b, err := bundle.Read(cmd.Context(), src, c, *host, *bin, installed)
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		if err := write(b, &packed); err != nil {
			return err
		}
		messages, err := output(cmd, *out, 0o644, packed.Bytes())
		if err != nil {
			return err
		}
		fmt.Fprintf(messages, "%s: %s of cluster %s, version %s\n", *out, *host, c.Name, b.Version())
		return nil
	})
}
