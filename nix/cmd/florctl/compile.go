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
		Short: "Compile the documents of hosts",
		Long: `Compile the cluster to the documents of its hosts: a manifest for each host, and a policy for each
provider host. With --host alone, print the body of one document. With --out, write the documents
of --host to DIR, or those of all hosts to DIR/HOST; directories of hosts that the flake no
longer has are removed. Nothing is sent to a host: florctl deploy and publish do that.`,
	}
	host := cmd.Flags().String("host", "", "compile the documents of this `HOST` only")
	kind := cmd.Flags().String("kind", document.DocManifest, "`DOCUMENT` to print: manifest or policy")
	out := cmd.Flags().String("out", "", "write documents into this `DIR`")
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
