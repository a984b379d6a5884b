package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
)

func newCompileCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compile [FLAKE] {--host NAME [--kind policy] | --out DIR}",
		Short: "Compile the flake into the documents of hosts",
		Long: `Compile the flake into the documents of its hosts, to read them or to deliver them with your own
tools. Each host has a manifest, which describes what the host does. Each provider host also has
a policy, which describes what its providers may grant. The command sends nothing to hosts. To
do that, run florctl publish or florctl deploy.

The flags decide what the command writes:

  --host               print one document of the host
  --host and --out     write all documents of the host to DIR
  --out                write the documents of every host to DIR/HOST, and remove the
                       directories of hosts that the flake no longer has`,
	}
	host := cmd.Flags().String("host", "", "name of the `HOST` to compile the documents of")
	kind := cmd.Flags().String("kind", document.DocManifest, "`DOCUMENT` to print: manifest or policy")
	out := cmd.Flags().String("out", "", "write the documents to this `DIR`")
	cmd.MarkFlagsMutuallyExclusive("kind", "out")
	return onSource(cmd, func(src compile.Source) error {
		if *host == "" && *out == "" {
			return errors.New("give --host NAME to print one host's document, or --out DIR to write all")
		}
		var hosts []string
		if *host != "" {
			hosts = []string{*host}
		}
		c, err := compile.Compile(cmd.Context(), src, hosts...)
		if err != nil {
			return err
		}
		switch {
		case *out == "":
			return printBody(cmd, c.Documents[*host], *kind)
		case *host != "":
			return compile.Write(*out, c.Documents[*host])
		}
		return compile.WriteAll(*out, c.Documents)
	})
}

func printBody(cmd *cobra.Command, documents []document.Document, kind string) error {
	for _, d := range documents {
		if d.Envelope.Kind == kind {
			_, body, _ := d.Bytes()
			_, err := cmd.OutOrStdout().Write(body)
			return err
		}
	}
	return fmt.Errorf("host %s has no document of kind %q", documents[0].Envelope.Host, kind)
}
