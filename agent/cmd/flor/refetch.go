package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/hostapi"
)

func newRefetchCmd(m *instance) *cobra.Command {
	var state florete.Layout
	var dir string
	cmd := &cobra.Command{
		Use:   "refetch NEED…",
		Short: "Fetch needs again, whatever their state",
		Long: `Have flor activate request needs again within ten seconds, where what a provider
returned before is of no use any more. Units are notified when the answer has changed.`,
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
				if err := hostapi.Refetch(doc.Manifest(), dir, id); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "need %s: activation requests it again within ten seconds\n", id)
			}
			return nil
		},
	}
	m.state(cmd, &state)
	cmd.Flags().StringVar(&dir, "refetch", "", "directory that flor activate --refetch watches")
	m.follow(cmd, "refetch", florete.Instance.Refetch)
	return cmd
}
