package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/forward/upstream"
	"github.com/florete/florete/internal/hostdir"
)

func newGuardCmd(m *instance) *cobra.Command {
	var c upstream.GuardConfig
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Protect published services from other accounts of this host",
		Long: `Protect published services from other accounts of this host. A service listens on a loopback
address, to which every local account could otherwise connect. The command keeps an nftables
table, with which only the forwarder, root and the account of a service can connect to that
service. systemd runs this command. When it stops, it removes the table.

The table also marks datagrams to local listeners with the account that sends them. The command
needs nft(8) and CAP_NET_ADMIN.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Instance, c.Log = m.Instance, slog.Default()
			return upstream.RunGuard(cmd.Context(), c)
		},
	}
	m.state(cmd, &c.Layout)
	cmd.Flags().StringVar(&c.Account, "account", "", "Unix `ACCOUNT` of the forwarder")
	m.follow(cmd, "account", hostdir.Instance.String)
	return cmd
}
