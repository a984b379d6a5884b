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
		Short: "Keep the names of services in /etc/hosts",
		Long: `Write the names of the services that this host may reach into a block of /etc/hosts, with the
addresses of their local listeners, and keep the block up to date until the command is stopped. No
other line is changed. The block stays when the command stops. To remove it, pass --remove.`,
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
	f.StringVar(&c.Hosts, "hosts", hostsfile.DefaultHosts, "`FILE` to keep the names in, see hosts(5)")
	f.BoolVar(&remove, "remove", false, "remove the names, and end")
	return cmd
}
