package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/doctor"
	"github.com/florete/florete/internal/terminal"
)

// exitFindings is the exit status of flor doctor if at least one check has a finding.
const exitFindings exit = 2

func newDoctorCmd(m *instance) *cobra.Command {
	var c doctor.Config
	var show terminal.Show
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong with this host",
		Long: `Find problems of this host, and print a remedy for each. Run the command as root when the host
does not work as it should: other accounts cannot read everything that it checks. Among others,
the command checks documents, clock, names, providers, certificates, systemd units, permissions
and kernel. It changes nothing.

Exit status: 0 if nothing is wrong; 1 if the command was called in a wrong way; 2 if it found a
problem.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Instance = m.Instance
			r := doctor.Run(cmd.Context(), c)
			err := show(r, func(w io.Writer) error { return doctor.Print(w, r) })
			if err == nil && r.Findings() > 0 {
				err = exitFindings
			}
			return err
		},
	}
	m.state(cmd, &c.Layout)
	m.socket(cmd, &c.Socket)
	cmd.Flags().StringVar(&c.HostKey, "ssh-host-key", doctor.DefaultHostKey, "`FILE` that contains the SSH host key of this host")
	show = terminal.Shown(cmd, "print the checks and their findings as a JSON object")
	return cmd
}
