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
		Short: "Fetch certificates or secrets of this host again",
		Long: `Fetch needs of this host again, for example because a delivered file was lost or damaged. NEED
is a name that flor status prints. flor activate requests the needs within ten seconds. If a
provider returns a new answer, units are notified. To replace a secret, run flor rotate.`,
	})
}

func newRotateCmd(m *instance) *cobra.Command {
	return requests(m, localapi.Rotate, localapi.AnotherSecret, &cobra.Command{
		Use:   "rotate NEED…",
		Short: "Replace secrets of this host",
		Long: `Replace secrets of this host, such as the secret of an OIDC client. NEED is a name that flor
status prints. flor activate requests a new secret within ten seconds, delivers it and notifies
units. You cannot undo a rotation. If somebody else may know the secret, raise its generation in
the topology instead.

The old secret of an OIDC client stays valid for 15 minutes, or for an hour if the issuer is
external, so that no login fails. If you wrote the provider of the need yourself, your program
decides how long the old secret stays valid. Other kinds of need cannot be rotated: for
certificates, run flor refetch.

The provider accepts one rotation of a secret in ten minutes, and records it in the audit log.`,
	})
}

// requests completes a command that sends requests to activation, such as flor refetch. For each
// need, the command calls the function leave, which writes a request into the directory that
// activation follows. The argument what describes the request in the output.
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
	m.refetch(cmd, &dir)
	return cmd
}
