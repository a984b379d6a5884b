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
		Short: "Fetch needs again",
		Long: `Request needs again, within ten seconds, although they are fulfilled. The provider returns the same
answer unless something changed; units are notified if it did. Use it when a delivered file is lost
or damaged. To replace a secret, run flor rotate.`,
	})
}

func newRotateCmd(m *instance) *cobra.Command {
	return requests(m, localapi.Rotate, localapi.AnotherSecret, &cobra.Command{
		Use:   "rotate NEED…",
		Short: "Rotate the secrets of needs",
		Long: `Request another secret for needs within ten seconds. The new secret is delivered, and units are
notified. The old secret of an OIDC client stays valid for 15 minutes, and at an external issuer for
an hour, so that no login fails. For a kind of your own, its program decides. Other kinds cannot be
rotated this way. A rotation cannot be undone.

If a secret may be known to others, raise its generation in the topology instead. The provider
accepts one rotation of a secret in ten minutes, and audits it. Certificates have no such secret:
flor refetch replaces them.`,
	})
}

// requests completes a command that leaves requests to activation.
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
	cmd.Flags().StringVar(&dir, "refetch", "", "`DIR` that flor activate --refetch watches")
	m.follow(cmd, "refetch", hostdir.Instance.Refetch)
	return cmd
}
