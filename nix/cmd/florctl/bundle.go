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
		Long: `Pack everything that a host runs into one file, to install it on a Linux machine with systemd
but without NixOS. The file contains the documents of the host, its systemd units, and the
programs flor and flor-provider. The programs must be linked statically (CGO_ENABLED=0). Nothing
is sent to the host: florctl deploy does that.

A bundle in the format tar.gz contains install.sh, which installs, upgrades, rolls back and
removes it. A bundle in the format deb is a package named florete, or florete-NAME if the
topology gives the host an instance. The same flake and host give the same bytes.`,
	}
	host := cmd.Flags().String("host", "", "name of the `HOST` to pack the bundle of")
	out := cmd.Flags().String("out", "", "write the bundle to this `FILE`, or to standard output if it is -")
	format := cmd.Flags().String("format", "tar.gz", "`FORMAT` of the bundle: tar.gz or deb")
	bin := cmd.Flags().String("bin", "", "`DIR` that contains the programs flor and flor-provider to pack (default: the directory of florctl)")
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
