package main

import (
	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/doctor"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
)

// exitFindings is the exit status of flor doctor if there are findings.
const exitFindings exit = 2

func newDoctorCmd(m *instance) *cobra.Command {
	var c doctor.Config
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong with this host",
		Long: `Examine this host, and print what is wrong with the remedy for each finding: documents, clock,
names, providers, needs, identity, other forwarders, the agent, units, permissions and kernel.
Nothing is changed. Run it as root, which can read everything that it examines.

Exit status: 0 nothing is wrong; 1 usage; 2 there are findings.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Instance = m.Instance
			r := doctor.Run(cmd.Context(), c)
			var err error
			if asJSON {
				err = terminal.PrintJSON(cmd.OutOrStdout(), r)
			} else {
				err = doctor.Print(cmd.OutOrStdout(), r)
			}
			if err == nil && r.Findings() > 0 {
				err = exitFindings
			}
			return err
		},
	}
	f := cmd.Flags()
	m.state(cmd, &c.Layout)
	f.StringVar(&c.Socket, "socket", "", "Unix `SOCKET` of the agent")
	m.follow(cmd, "socket", hostdir.Instance.Agent)
	f.StringVar(&c.HostKey, "ssh-host-key", doctor.DefaultHostKey, "`FILE` of the SSH host key that proves this host at enrolment")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
