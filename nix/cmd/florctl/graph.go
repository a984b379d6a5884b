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
		Short: "Draw a cluster",
		Long: `Draw a cluster: hosts with the services and users on them, who reaches what
through which roles, and who provides for whom. SVG is for browsers and
documents, DOT for Graphviz, Mermaid for Markdown, where viewers draw no more
than 500 edges: of a large cluster, take a --host.`,
	}
	format := cmd.Flags().String("format", "svg", "svg, dot or mermaid")
	host := cmd.Flags().String("host", "", "draw only what the host `NAME` has to do with")
	out := cmd.Flags().String("out", atomicfile.Stdout, "write to `FILE` instead of printing")
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
