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
		Short: "Draw the cluster",
		Long: `Draw the cluster: the hosts with their services and users, who reaches which service through which
roles, and which hosts provide for others. SVG is for browsers and documents, DOT for Graphviz,
and Mermaid for Markdown, where viewers draw at most 500 edges. For a large cluster, pass --host.`,
	}
	format := cmd.Flags().String("format", "svg", "`FORMAT` of the drawing: svg, dot or mermaid")
	host := cmd.Flags().String("host", "", "draw only this `HOST`, its neighbours and what is between them")
	out := cmd.Flags().String("out", atomicfile.Stdout, "write the drawing to `FILE`, or to standard output for -")
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
