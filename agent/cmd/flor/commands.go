package main

import (
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/suggest"
)

// addCommands adds all commands, in the groups of the help.
func addCommands(root *cobra.Command, m *instance) {
	suggest.Add(root, examples,
		suggest.Group{Title: "This host", Commands: []*cobra.Command{newStatusCmd(m), newDoctorCmd(m), newSyncCmd(m), newRefetchCmd(m), newRotateCmd(m), newWitnessCmd(m)}},
		suggest.Group{Title: "Services", Commands: []*cobra.Command{newPingCmd(m), newTopCmd(m), newWhoisCmd(m)}},
		suggest.Group{Title: "Joining a cluster", Commands: []*cobra.Command{newJoinCmd(m), newEnrollCmd(m), newIDCmd(m)}},
		suggest.Group{Title: "Run by systemd", Commands: []*cobra.Command{newActivateCmd(m), newAgentCmd(m), newCredentialsCmd(m), newGuardCmd(m), newHostCmd(m), newHostsFileCmd(m), newIngressCmd(m), newStoreCertsCmd(m), newWorkloadCmd(m)}},
	)
}

// examples has the examples of commands that have none where they are made.
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
