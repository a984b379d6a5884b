package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/hostapi"
)

func newRotateCmd(m *instance) *cobra.Command {
	var state florete.Layout
	var dir string
	cmd := &cobra.Command{
		Use:   "rotate NEED…",
		Short: "Have needs asked for again, whatever their state",
		Long: `Have flor activate ask for needs again, within ten seconds: when what a provider
answered before is of no use any more. Units are told when the answer is another.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, needs []string) error {
			doc, err := state.Manifest()
			if err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			for _, id := range needs {
				if err := hostapi.Rotate(doc.Manifest(), dir, id); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "need %s: activation asks for it again within ten seconds\n", id)
			}
			return nil
		},
	}
	m.state(cmd, &state)
	cmd.Flags().StringVar(&dir, "rotate", "", "directory that flor activate --rotate watches")
	m.follow(cmd, "rotate", florete.Instance.Rotate)
	return cmd
}
