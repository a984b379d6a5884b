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
		Short: "Compile a cluster into its hosts' documents",
		Long: `Compile a cluster into its hosts' documents: manifests, and policies of the
hosts that provide. With --host alone the body is printed, byte for byte. With
--out documents are written: those of --host into DIR, else those of every host
into DIR/<host>; directories of hosts that are no more go.`,
	}
	host := cmd.Flags().String("host", "", "only the documents of the host `NAME`")
	kind := cmd.Flags().String("kind", document.DocManifest, "document to print, manifest or policy")
	out := cmd.Flags().String("out", "", "write documents into this directory")
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
