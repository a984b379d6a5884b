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
		Long: `Keep the names of services in /etc/hosts, so that programs find the services without DNS.
systemd runs this command. The command writes the names of the services that this host may reach
into a block of the file, and updates the block until it is stopped. It changes no other line.
The block stays when the command stops. To remove the block, pass --remove.`,
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
	f.StringVar(&c.Hosts, "hosts", hostsfile.DefaultHosts, "`FILE` to keep the names in, in the format of hosts(5)")
	f.BoolVar(&remove, "remove", false, "remove the block of names, and end")
	return cmd
}
