package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/hostsfile"
)

func newHostsFileCmd(m *instance) *cobra.Command {
	var c hostsfile.Config
	var remove bool
	cmd := &cobra.Command{
		Use:   "hosts-file",
		Short: "Keep the names of the cluster's services in /etc/hosts",
		Long: `Keep a block in /etc/hosts where the names of the services that this host may reach
lead to their local listeners, until it is stopped. No other line is touched, and the
block stays: --remove takes it out.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Instance = m.Instance
			if remove {
				return hostsfile.Remove(c)
			}
			c.Log = slog.Default()
			return hostsfile.Run(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	m.state(cmd, &c.Layout)
	f.StringVar(&c.Hosts, "hosts", hostsfile.DefaultHosts, "file of hosts(5)")
	f.BoolVar(&remove, "remove", false, "take the names out, and end")
	return cmd
}
