package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/terminal"
)

func newTopCmd(m *instance) *cobra.Command {
	var socket string
	var interval time.Duration
	var once, asJSON bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the traffic of the forwarder",
		Long: `Show the traffic of this host's forwarder, with the busiest services and callers first, until
you interrupt the command. A row stands for a service and the identity at the other end (the
principal). It shows:

  - the open connections, and the new connections per second
  - IN, the bytes per second from the service to the principal
  - OUT, the bytes per second from the principal to the service
  - the refused connections, and the transport

If the output is not a terminal, tables are printed one after the other.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval < 100*time.Millisecond {
				return fmt.Errorf("--interval %s, want 100ms or more", interval)
			}
			out := cmd.OutOrStdout()
			print := status.PrintTop
			if asJSON {
				print = func(w io.Writer, v status.Top) error { return terminal.PrintJSONLine(w, v) }
			}
			clears, first := !asJSON && !once && isTerminal(), true
			var failed error
			err := status.WatchTop(cmd.Context(), socket, interval, func(v status.Top) bool {
				switch {
				case clears:
					fmt.Fprint(out, "\x1b[H\x1b[2J")
				case !first && !asJSON:
					fmt.Fprintln(out)
				}
				first = false
				failed = print(out, v)
				return failed == nil && !once
			})
			if failed != nil {
				return failed
			}
			return err
		},
	}
	f := cmd.Flags()
	m.socket(cmd, &socket)
	f.DurationVar(&interval, "interval", 2*time.Second, "time between two tables")
	f.BoolVar(&once, "once", false, "print one table, and end")
	f.BoolVar(&asJSON, "json", false, "print the traffic of each interval as a JSON object on a line of its own")
	return cmd
}

// isTerminal reports whether standard output is a terminal that can move its cursor.
func isTerminal() bool {
	_, err := unix.IoctlGetTermios(int(os.Stdout.Fd()), unix.TCGETS)
	return err == nil && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}
