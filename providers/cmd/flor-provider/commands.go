package main

import (
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
)

// addCommands adds all commands, in the groups of the help.
func addCommands(root *cobra.Command, t *target) {
	terminal.AddCommands(root, examples,
		terminal.CommandGroup{Title: "What operators do here", Commands: []*cobra.Command{controlCmd(t), importCmd(t), auditCmd(t), stateCmd(t), installCmd(t), rotateSealCmd(t)}},
		terminal.CommandGroup{Title: "Run by systemd", Commands: []*cobra.Command{runCmd(t), unsealCmd(t)}},
	)
}

// examples has the examples of commands that have none where they are made.
var examples = map[string]string{
	"audit":         `flor-provider audit --verify`,
	"install-cert":  `flor-provider install-cert < issuing.crt`,
	"rotate-seal":   `flor-provider rotate-seal oidc`,
	"run":           `flor-provider run cert`,
	"state backup":  `flor-provider state backup forge.state`,
	"state migrate": `flor-provider state migrate --timeout 5m`,
	"state restore": `flor-provider state restore forge.state`,
	"unseal":        `flor-provider unseal oidc`,
}
