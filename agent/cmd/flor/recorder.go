package main

import (
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/recorder"
)

func newRecorderCmd(m *instance) *cobra.Command {
	c := recorder.Config{Log: slog.Default()}
	cmd := &cobra.Command{
		Use:   "recorder",
		Short: "Record SSH sessions",
		Long: `Record the SSH sessions at services of this host that have record in the topology, in the directory
/var/lib/florete/recordings. systemd starts this command when a session begins. It ends within ten
minutes of the last session, so that sessions after an upgrade are recorded by the new program. The
recordings are encrypted to the recipients in the topology, and this host cannot read them:
florctl sessions replay.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ln, err := m.passed("recorder.socket")
			if err != nil {
				return err
			}
			return recorder.Serve(cmd.Context(), ln.(*net.UnixListener), c)
		},
	}
	m.state(cmd, &c.Layout)
	m.socket(cmd, &c.Agent)
	return cmd
}
