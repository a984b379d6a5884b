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
		Long: `Pack the documents, systemd units and programs of a host into one file. Use this file to install
a Linux machine that has systemd but not NixOS. The command does not contact the host: to copy
the bundle there and install it, run florctl deploy.

A tar.gz bundle contains install.sh, a script that installs, upgrades, rolls back and removes
the bundle. A deb bundle is a package named florete. If the topology gives the host an instance,
the package is named florete-NAME.

The programs must be linked statically (CGO_ENABLED=0). If you pack a bundle again from the same
flake, the file is identical byte for byte.`,
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
