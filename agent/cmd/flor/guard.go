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
		Short: "Keep other accounts of this host out of its published services",
		Long: `Keep a table of nftables, until it is stopped, in which other accounts of this host
than the forwarder's, root and a service's own cannot connect to the upstreams of
published services on loopback, and datagrams to local listeners carry who sends them.
It needs nft(8) and CAP_NET_ADMIN, and takes the table out when it stops.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Instance, c.Log = m.Instance, slog.Default()
			return guard.Run(cmd.Context(), c)
		},
	}
	m.state(cmd, &c.Layout)
	cmd.Flags().StringVar(&c.Account, "account", "", "the forwarder's account")
	m.follow(cmd, "account", hostdir.Instance.String)
	return cmd
}
