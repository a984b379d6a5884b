package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/guard"
	"github.com/florete/florete/internal/hostdir"
)

func newGuardCmd(m *instance) *cobra.Command {
	var c guard.Config
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Restrict published services to their callers",
		Long: `Keep an nftables table until the command is stopped. With it, only the forwarder, root and the
account of a service can connect to the upstreams of published services on loopback, and datagrams
to local listeners carry the account that sends them. The table is removed when the command stops.
It needs nft(8) and CAP_NET_ADMIN.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Instance, c.Log = m.Instance, slog.Default()
			return guard.Run(cmd.Context(), c)
		},
	}
	m.state(cmd, &c.Layout)
	cmd.Flags().StringVar(&c.Account, "account", "", "`ACCOUNT` of the forwarder")
	m.follow(cmd, "account", hostdir.Instance.String)
	return cmd
}
