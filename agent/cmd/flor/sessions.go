package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	agentstatus "github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/nss"
	"github.com/florete/florete/internal/sessions"
	"github.com/florete/florete/internal/terminal"
)

func newSessionsCmd(m *instance) *cobra.Command {
	var socket string
	var show terminal.Show
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "Show the sessions at this host",
		Long: `Show the open sessions at services of this host whose protocol is ssh, rdp or vnc, oldest first.
A session is a connection. SENT are the bytes from the person to the service. To see the sessions
of all hosts, run florctl sessions on an operator's machine.`,
		Example: "  # Show the sessions.\n  flor sessions",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, _, err := agentstatus.Fetch(cmd.Context(), socket)
			if err != nil {
				return err
			}
			return show(append([]sessions.Session{}, r.Sessions...), func(w io.Writer) error { return sessions.Print(w, r.Sessions, time.Now()) })
		},
	}
	show = terminal.Shown(cmd, "print the sessions as a JSON list")
	end := &cobra.Command{
		Use:   "end SESSION",
		Short: "End a session at this host",
		Long: `End a session, given by the ID that flor sessions shows. The forwarder closes its connection at
once, and the access log names your account. The person may open another session: to prevent
that, take the role away, or run florctl suspend on an operator's machine.`,
		Example: "  # End a session.\n  flor sessions end k7qj2m5xwa",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			by := "account " + account()
			if err := agentstatus.EndSession(cmd.Context(), agentstatus.Beside(socket, "session"), args[0], by); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "session %s: ended\n", args[0])
			return err
		},
	}
	cmd.AddCommand(end)
	for _, c := range []*cobra.Command{cmd, end} {
		m.socket(c, &socket)
	}
	return cmd
}

// account returns the name of the account that runs this program. If the account is root by sudo,
// the name is that of the person.
func account() string {
	name := fmt.Sprint(os.Getuid())
	if u, err := nss.Current(); err == nil {
		name = u.Username
	}
	if os.Getuid() == 0 {
		name = cmp.Or(os.Getenv("SUDO_USER"), name)
	}
	return name
}
