package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/workload"
)

func newWorkloadCmd(m *instance) *cobra.Command {
	var c workload.Config
	cmd := &cobra.Command{
		Use:   "workload",
		Short: "Serve the SPIFFE Workload API",
		Long: `Serve the SPIFFE Workload API, from which services of this host get their X.509-SVIDs and
JWT-SVIDs. systemd runs this command. A service needs workloadApi = true in the topology, and
connects to SPIFFE_ENDPOINT_SOCKET=unix:///run/florete/workload.sock. The account and the
systemd unit of a program decide which identities the program gets.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ln, err := m.passed("workload.socket")
			if err != nil {
				return err
			}
			c.Log = slog.Default()
			return workload.Serve(cmd.Context(), ln, c)
		},
	}
	m.state(cmd, &c.Layout)
	return cmd
}
