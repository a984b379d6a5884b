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
		Short: "Pack the bundle of a host for any Linux with systemd",
		Long: `Pack all that a host runs into one file: its documents, its units, and the programs flor and
flor-provider, linked statically (CGO_ENABLED=0). The same host gives the same bytes.

A tar.gz has install.sh, which installs, upgrades, rolls back and removes. A deb is a package
named florete, or florete-NAME where the topology gives the host an instance. Nothing is sent to
the host: florctl deploy does that.`,
	}
	host := cmd.Flags().String("host", "", "`HOST` to pack the bundle of")
	out := cmd.Flags().String("out", "", "write the bundle to `FILE`, or to standard output for -")
	format := cmd.Flags().String("format", "tar.gz", "`FORMAT` of the bundle: tar.gz or deb")
	bin := cmd.Flags().String("bin", "", "`DIR` of flor and flor-provider (default: that of florctl)")
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
