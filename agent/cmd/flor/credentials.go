package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/credentials"
)

func newCredentialsCmd(m *instance) *cobra.Command {
	c := credentials.Config{Idle: 30 * time.Second}
	cmd := &cobra.Command{
		Use:   "credentials",
		Short: "Serve LoadCredential= of systemd units",
		Long: `Give systemd units their secrets as credentials. systemd starts this command when a unit with
LoadCredential=NAME:/run/florete/credentials.sock starts. The unit gets the credential as soon
as the secret is delivered to this host. The command ends when no unit is waiting.

NAME is one of these:

  KIND_FILE   one file of the unit's service, such as oidc_client-secret
  KIND        a JSON object with all files of this kind`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ln, waiting, err := credentials.Sockets(activation.Files(true))
			if err != nil {
				return fmt.Errorf("%w: start %s instead", err, m.Unit("credentials.socket"))
			}
			c.Log = slog.Default()
			return credentials.Serve(cmd.Context(), ln, waiting, c)
		},
	}
	m.state(cmd, &c.Layout)
	return cmd
}
