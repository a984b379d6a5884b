package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/hostapi"
	agentstatus "github.com/florete/florete/agent/status"
)

func newHostCmd(m *instance) *cobra.Command {
	parent := &cobra.Command{Use: "host", Short: "The host's own API"}
	var c hostapi.Config
	var look, act string
	run := &cobra.Command{
		Use:   "run",
		Short: "Answer about this host on Unix sockets, for services that publish them",
		Long: `Answer about this host until told to stop: on one socket its manifest, status and
journals, on another requests to fetch a need again. Who may ask is the forwarder's to
decide: publish the sockets as services. systemd may pass one or both.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			passed, err := activation.ListenersWithNames()
			if err != nil {
				return fmt.Errorf("sockets from systemd: %w", err)
			}
			c.Instance = m.Instance
			group, ctx := errgroup.WithContext(cmd.Context())
			serve := func(name, path string, h http.Handler) error {
				ln, err := listen(passed, name, path)
				if ln != nil {
					group.Go(func() error { return hostapi.Serve(ctx, ln, h) })
				}
				return err
			}
			err = errors.Join(serve(m.Unit("host"), look, hostapi.Look(c)), serve(m.Unit("host-rotate"), act, hostapi.Act(c)))
			if err != nil {
				group.Go(func() error { return err })
			}
			return group.Wait()
		},
	}
	f := run.Flags()
	m.state(run, &c.Layout)
	f.StringVar(&c.Agent, "agent", "", "Unix socket of the agent")
	f.StringVar(&c.Rotate, "rotate", "", "directory that flor activate --rotate watches")
	f.StringVar(&look, "socket", "", "Unix socket to answer on, unless systemd passes some")
	f.StringVar(&act, "rotate-socket", "", "Unix socket for requests to fetch a need again, likewise")
	m.follow(run, "agent", florete.Instance.Agent)
	m.follow(run, "rotate", florete.Instance.Rotate)
	m.follow(run, "socket", func(m florete.Instance) string { return m.Run() + "-host.sock" })
	m.follow(run, "rotate-socket", func(m florete.Instance) string { return m.Run() + "-host-rotate.sock" })
	parent.AddCommand(run, newRotateCmd(m))
	return parent
}

// listen takes the socket of this name that systemd passes, or binds it where systemd
// passes none at all.
func listen(passed map[string][]net.Listener, name, path string) (net.Listener, error) {
	if len(passed) == 0 {
		return agentstatus.Listen(path)
	}
	if all := passed[name]; len(all) > 0 {
		return all[0], nil
	}
	return nil, nil
}
