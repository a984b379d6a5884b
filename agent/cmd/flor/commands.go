package main

import (
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/manual"
	"github.com/florete/florete/internal/release"
	"github.com/florete/florete/internal/terminal"
)

// newRoot returns the program of that name with all its commands, in the groups of the help.
func newRoot(name string, m *instance) *cobra.Command {
	root := &cobra.Command{
		Use:           name,
		Short:         "Run a host of a Florete cluster",
		Version:       release.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	m.flag(root)
	terminal.AddCommands(root, examples,
		terminal.CommandGroup{Title: "This host", Commands: []*cobra.Command{newStatusCmd(m), newDoctorCmd(m), newSyncCmd(m), newRefetchCmd(m), newRotateCmd(m), newWitnessCmd(m)}},
		terminal.CommandGroup{Title: "Services", Commands: []*cobra.Command{newPingCmd(m), newTopCmd(m), newWhoisCmd(m)}},
		terminal.CommandGroup{Title: "Joining a cluster", Commands: []*cobra.Command{newJoinCmd(m), newEnrollCmd(m), newIDCmd(m)}},
		terminal.CommandGroup{Title: "Run by systemd", Commands: []*cobra.Command{newActivateCmd(m), newAgentCmd(m), newCredentialsCmd(m), newGuardCmd(m), newHostCmd(m), newHostsFileCmd(m), newIngressCmd(m), newStoreCertsCmd(m), newWorkloadCmd(m)}},
	)
	root.AddCommand(manual.Command())
	return root
}

// examples contains the examples of commands that do not define their own.
var examples = map[string]string{
	"activate":           `flor activate --once`,
	"agent reload":       `flor agent reload`,
	"agent run":          `flor agent run`,
	"credentials":        `flor credentials`,
	"doctor":             `flor doctor`,
	"enroll":             `flor enroll raishan.age`,
	"guard":              `flor guard`,
	"host run":           `flor host run`,
	"hosts-file":         `flor hosts-file`,
	"id create":          `flor id create > request.json`,
	"ingress":            `flor ingress`,
	"join":               `flor join - < token`,
	"refetch":            `flor refetch cert-node`,
	"rotate":             `flor rotate oidc-wiki`,
	"status":             `flor status`,
	"store-certificates": `flor store-certificates`,
	"sync":               `flor sync`,
	"sync arm":           `flor sync arm /var/lib/florete/documents`,
	"sync rollback":      `flor sync rollback`,
	"top":                `flor top`,
	"witness":            `flor witness`,
	"witness accept":     `flor witness accept forge cert --reason 'restored from a backup'`,
	"workload":           `flor workload`,
}
