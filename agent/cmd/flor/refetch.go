package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/localapi"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

func newRefetchCmd(m *instance) *cobra.Command {
	return requests(m, localapi.Refetch, localapi.Again, &cobra.Command{
		Use:   "refetch NEED…",
		Short: "Fetch needs again, whatever their state",
		Long: `Have flor activate request needs again within ten seconds, where what a provider
returned before is of no use any more. The answer is the same unless something changed;
units are notified when it did. To replace a secret, see flor rotate.`,
	})
}

func newRotateCmd(m *instance) *cobra.Command {
	return requests(m, localapi.Rotate, localapi.AnotherSecret, &cobra.Command{
		Use:   "rotate NEED…",
		Short: "Replace the secrets of needs",
		Long: `Have flor activate request another secret for needs within ten seconds. The new one is
delivered and units are notified; the former one ends, that of a client of the issuer a
quarter of an hour later, so that no login fails. Where it may be known to others, raise
the generation in the topology instead, which ends it at once. The provider accepts one rotation of a secret in ten
minutes and audits it. Certificates have no secret that a provider knows: flor refetch
replaces them.`,
	})
}

// requests is a command that leaves requests to activation.
func requests(m *instance, leave func(document.Manifest, string, string) error, what string, cmd *cobra.Command) *cobra.Command {
	var state hostdir.Layout
	var dir string
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, needs []string) error {
		doc, err := state.Manifest()
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, id := range needs {
			if err := leave(doc.Manifest(), dir, id); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "need %s: activation requests %s within ten seconds\n", id, what)
		}
		return nil
	}
	m.state(cmd, &state)
	cmd.Flags().StringVar(&dir, "refetch", "", "directory that flor activate --refetch watches")
	m.follow(cmd, "refetch", hostdir.Instance.Refetch)
	return cmd
}
