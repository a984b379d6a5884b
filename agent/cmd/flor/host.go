package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/florete/florete/agent/localapi"
	agentstatus "github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/hostdir"
)

func newHostCmd(m *instance) *cobra.Command {
	parent := &cobra.Command{Use: "host", Short: "Serve the API of this host"}
	var c localapi.Config
	var read, admin string
	run := &cobra.Command{
		Use:   "run",
		Short: "Serve the API of this host",
		Long: `Serve the API of this host to other hosts of the cluster, until the command is stopped. systemd
runs this command, and passes one socket or both:

  - On the first socket, the command serves the manifest, the status and the journals.
  - On the second socket, the command accepts requests to fetch a need again, and to end a session.

Publish the sockets as services, so that the forwarder decides who reaches them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			inherited, err := activation.ListenersWithNames()
			if err != nil {
				return fmt.Errorf("sockets from systemd: %w", err)
			}
			c.Instance, c.AdminSocket = m.Instance, admin
			group, ctx := errgroup.WithContext(cmd.Context())
			serve := func(name, path string, h http.Handler) error {
				ln, err := listen(inherited, name, path)
				if ln != nil {
					group.Go(func() error { return localapi.Serve(ctx, ln, h) })
				}
				return err
			}
			err = errors.Join(serve(m.Unit("host"), read, localapi.ReadHandler(c)), serve(m.Unit("host-refetch"), admin, localapi.AdminHandler(c)))
			if err != nil {
				group.Go(func() error { return err })
			}
			return group.Wait()
		},
	}
	f := run.Flags()
	m.state(run, &c.Layout)
	f.StringVar(&c.Agent, "agent", "", "path of the Unix `SOCKET` of the forwarder")
	m.refetch(run, &c.Refetch)
	f.StringVar(&read, "socket", "", "path of the Unix `SOCKET` to serve manifest, status and journals on, unless systemd passes one")
	f.StringVar(&admin, "refetch-socket", "", "path of the Unix `SOCKET` for requests to fetch a need again, unless systemd passes one")
	m.follow(run, "agent", hostdir.Instance.Agent)
	m.follow(run, "socket", func(m hostdir.Instance) string { return m.Run() + "-host.sock" })
	m.follow(run, "refetch-socket", func(m hostdir.Instance) string { return m.Run() + "-host-refetch.sock" })
	parent.AddCommand(run)
	return parent
}

// listen returns the listener for a socket of the host API. If systemd passed sockets to this
// process, it returns the passed socket with the given name. Otherwise it binds a new socket to the
// path.
func listen(inherited map[string][]net.Listener, name, path string) (net.Listener, error) {
	if len(inherited) == 0 {
		return agentstatus.Listen(path, 0o660)
	}
	if all := inherited[name]; len(all) > 0 {
		return all[0], nil
	}
	return nil, nil
}
