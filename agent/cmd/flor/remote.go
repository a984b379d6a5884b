package main

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/remote"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
)

func newRemoteCmd(m *instance) *cobra.Command {
	var state hostdir.Layout
	var client string
	var printed bool
	var show terminal.Show
	cmd := &cobra.Command{
		Use:   "remote [[ACCOUNT@]SERVICE [-- ARGUMENT...]]",
		Short: "Open a shell or a desktop on another machine",
		Long: `Open a session at a service whose protocol is ssh, rdp or vnc. The command starts the client that
it finds in PATH: ssh for SSH; xfreerdp3, wlfreerdp3, xfreerdp or wlfreerdp for RDP; vncviewer,
xtigervncviewer or xtightvncviewer for VNC. The client gets the arguments after --. ACCOUNT is the
account at the service.

Without SERVICE, the command lists the services that this account may open, and says which of them
record sessions.

The forwarder of this host has verified the service. For RDP, the client therefore ignores the
certificate of the server.`,
		Example: "  # List the services.\n  flor remote\n  # Open the desktop of the host forge in a window of this size.\n  flor remote desk.forge -- /size:1600x900\n  # Log in as deploy.\n  flor remote deploy@shell",
		RunE: func(cmd *cobra.Command, args []string) error {
			man, err := manifest(state)
			if err != nil {
				return err
			}
			account := remote.NewAccount(man, uint32(os.Getuid()))
			if len(args) == 0 {
				all := remote.List(man, account)
				return show(all, func(w io.Writer) error { return remote.Print(w, all) })
			}
			s := remote.Session{Client: client, Args: args[1:]}
			var name string
			if s.Account, name, err = remote.Split(args[0]); err != nil {
				return err
			}
			if s.Service, err = remote.Find(man, account, name); err != nil {
				return err
			}
			command, err := s.Command(cmd.Context())
			if err != nil {
				return err
			}
			if printed {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), remote.Quote(command))
				return err
			}
			return fmt.Errorf("%s: %w", command[0], syscall.Exec(command[0], command, os.Environ()))
		},
	}
	m.state(cmd, &state)
	f := cmd.Flags()
	f.StringVar(&client, "client", "", "start this `PROGRAM` instead of the first known one in PATH")
	f.BoolVar(&printed, "print", false, "print the command line of the client, and do not start it")
	show = terminal.Shown(cmd, "print the services as a JSON list")
	cmd.MarkFlagsMutuallyExclusive("print", "json")
	return cmd
}
