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
		Long: `Give systemd the credentials that units load with
LoadCredential=NAME:/run/florete/credentials.sock. systemd starts this command when a unit
connects to the socket. A unit gets its credential as soon as the credential is delivered to
this host, and the command ends when no unit is waiting.

NAME is KIND_FILE, such as oidc_client-secret, for one file of the unit's service. NAME is KIND
for a JSON object with all files of that kind.`,
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
