package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/recorder"
	"github.com/florete/florete/internal/hostdir"
)

func newRecorderCmd(m *instance) *cobra.Command {
	c := recorder.Config{Log: slog.Default()}
	cmd := &cobra.Command{
		Use:   "recorder",
		Short: "Record SSH sessions",
		Long: `Record the SSH sessions at services of this host that have record in the topology, in the directory
/var/lib/florete/recordings. systemd starts this command when the first session begins. The
recordings are encrypted to the recipients in the topology, and this host cannot read them:
florctl sessions replay.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			listeners, err := activation.Listeners()
			if err == nil && (len(listeners) != 1 || listeners[0] == nil) {
				err = errors.New("systemd passes no socket")
			}
			if err != nil {
				return fmt.Errorf("%w: start %s instead", err, m.Unit("recorder.socket"))
			}
			return recorder.Serve(cmd.Context(), listeners[0], c)
		},
	}
	m.state(cmd, &c.Layout)
	cmd.Flags().StringVar(&c.Agent, "socket", "", "path of the Unix `SOCKET` of the forwarder")
	m.follow(cmd, "socket", hostdir.Instance.Agent)
	return cmd
}
