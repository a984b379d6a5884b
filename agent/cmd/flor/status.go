package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	agentstatus "github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
)

func newStatusCmd(m *instance) *cobra.Command {
	var state hostdir.Layout
	var socket string
	var show terminal.Show
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the state of this host", Long: `Show the state of this host: its identities, needs, services and peers, and the connections that
were refused. A need is an item that the host requests from a provider, such as a certificate.
To see all hosts of the cluster, run florctl status on an operator's machine.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, raw, err := agentstatus.Fetch(cmd.Context(), socket)
			if err != nil {
				if c, _ := state.PendingChange(); c != nil {
					err = fmt.Errorf("%w; %s goes back at %s, unless from a new login: flor sync --confirm %s", err, c, c.Deadline.UTC().Format(time.RFC3339), c.ID)
				}
				return err
			}
			return show(json.RawMessage(raw), func(w io.Writer) error { return agentstatus.Print(w, report, time.Now()) })
		},
	}
	m.state(cmd, &state)
	m.socket(cmd, &socket)
	show = terminal.Shown(cmd, "print the state of the host as a JSON object")
	return cmd
}
