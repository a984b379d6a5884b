package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
)

func newSessionsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions [FLAKE]",
		Short: "Show and end the sessions of people at services, and replay recorded ones",
		Long: `Show the open sessions at services whose protocol is ssh, rdp or vnc, oldest first. A session is a
connection. SENT are the bytes from the person to the service.

The command asks each host with such a service, at the service that publishes the API of the host
(unix:/run/florete-host.sock). With --via ssh, it runs flor sessions there as root.`,
		Example: "  # Show the sessions.\n  florctl sessions",
	}
	hosts := ofHosts(cmd)
	show := terminal.Shown(cmd, "print the sessions as a JSON list")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		h, err := hosts(args)
		if err != nil {
			return err
		}
		all, err := h.Sessions(cmd.Context(), cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		return show(all, func(w io.Writer) error { return client.PrintSessions(w, all, time.Now()) })
	}
	cmd.AddCommand(newSessionsEndCmd(), newSessionsReplayCmd())
	return cmd
}

func newSessionsEndCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "end SESSION [FLAKE]",
		Short: "End a session",
		Long: `End a session, given by the ID that florctl sessions shows. The forwarder of the host closes the
connection at once, and its access log names you. The person may open another session: to prevent
that, take the role away, or run florctl suspend.

The command calls the service that publishes unix:/run/florete-host-refetch.sock of the host. This
service needs identity = "http", so that the host learns who you are. With --via ssh, the access
log names root.`,
		Example: "  # End a session.\n  florctl sessions end k7qj2m5xwa",
	}
	hosts := ofHosts(cmd)
	cmd.Args = words(1, 2)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		h, err := hosts(args[1:])
		if err != nil {
			return err
		}
		all, err := h.Sessions(cmd.Context(), cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(s client.Session) bool { return s.ID == args[0] })
		if i < 0 {
			return fmt.Errorf("no open session %q: florctl sessions", args[0])
		}
		message, err := h.End(cmd.Context(), all[i])
		if err == nil {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", all[i].Host, message)
		}
		return err
	}
	return cmd
}

// ofHosts adds the flags that select a cluster and the way to its hosts. The function it returns
// reads the cluster from the flake in args.
func ofHosts(cmd *cobra.Command) func(args []string) (client.Hosts, error) {
	from := source(cmd)
	cleaned(cmd)
	how := cmd.Flags().String("via", "forwarder", "`WAY` to reach the hosts: forwarder, if this machine is a host of the cluster; ssh, to log in as root@HOST")
	return func(args []string) (client.Hosts, error) {
		src, err := from(args)
		if err != nil {
			return client.Hosts{}, err
		}
		t, err := evaluated(cmd, src, compile.ReadTopology)
		if err != nil {
			return client.Hosts{}, err
		}
		return client.ReachHosts(t, *how)
	}
}
