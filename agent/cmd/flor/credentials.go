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
		Short: "Give systemd the credentials that services load from a socket",
		Long: `Give systemd what units load with LoadCredential=NAME:/run/florete/credentials.sock,
as soon as it is delivered. NAME is KIND_FILE, such as oidc_client-secret, for one file
of the unit's service, or KIND for a JSON object with all of that kind.

systemd passes the socket, and starts this when a unit connects; it ends when none
does any more.`,
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
