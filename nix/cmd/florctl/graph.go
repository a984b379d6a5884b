package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/graph"
)

func newGraphCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "graph [FLAKE] [--format svg|dot|mermaid] [--host NAME] [--out FILE]",
		Short: "Draw the cluster as a graph",
		Long: `Draw a graph of the cluster, for example for documentation. The graph shows the hosts with their
services and users, and the provider hosts. An edge shows who reaches a service, and through
which role.

SVG is for browsers and documents, DOT is for Graphviz, and Mermaid is for Markdown pages.
Mermaid viewers draw at most 500 edges: in a large cluster, draw one host and its neighbours
with --host.`,
	}
	format := cmd.Flags().String("format", "svg", "`FORMAT` of the picture: svg, dot or mermaid")
	host := cmd.Flags().String("host", "", "name of the `HOST` to draw alone, with its neighbours and the edges between them")
	out := cmd.Flags().String("out", atomicfile.Stdout, "write the picture to this `FILE`, or to standard output if it is -")
	formats := map[string]func(graph.Cluster) []byte{"svg": graph.SVG, "dot": graph.DOT, "mermaid": graph.Mermaid}
	return onSource(cmd, func(src compile.Source) error {
		draw, ok := formats[*format]
		if !ok {
			return fmt.Errorf("--format %q: want svg, dot or mermaid", *format)
		}
		snapshot, err := evaluated(cmd, src, compile.Read)
		if err != nil {
			return err
		}
		c, err := graph.New(snapshot)
		if err != nil {
			return err
		}
		if *host != "" {
			if c, err = c.Around(*host); err != nil {
				return err
			}
		}
		_, err = output(cmd, *out, 0o644, draw(c))
		return err
	})
}
