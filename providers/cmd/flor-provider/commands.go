package main

import (
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/manual"
	"github.com/florete/florete/internal/release"
	"github.com/florete/florete/internal/terminal"
)

// newRoot returns the root command with the given name and all its commands, in the groups of the
// help.
func newRoot(name string, t *target) *cobra.Command {
	root := &cobra.Command{
		Use:           name,
		Short:         "Run the providers of a Florete cluster",
		Version:       release.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	t.flags(root)
	terminal.AddCommands(root, examples,
		terminal.CommandGroup{Title: "For operators", Commands: []*cobra.Command{controlCmd(t), importCmd(t), auditCmd(t), stateCmd(t), installCmd(t), rotateSealCmd(t)}},
		terminal.CommandGroup{Title: "Run by systemd", Commands: []*cobra.Command{runCmd(t), unsealCmd(t)}},
	)
	root.AddCommand(manual.Command())
	return root
}

// examples has the examples of commands that do not define their own.
var examples = map[string]string{
	"audit":         "flor-provider audit --verify\n  flor-provider audit --json --limit 1000 --after 2026-07-14T08:30:00.123456789Z",
	"install-cert":  `flor-provider install-cert < issuing.crt`,
	"rotate-seal":   `flor-provider rotate-seal oidc`,
	"run":           `flor-provider run cert`,
	"state backup":  `flor-provider state backup forge.state`,
	"state migrate": `flor-provider state migrate --timeout 5m`,
	"state restore": `flor-provider state restore forge.state`,
	"unseal":        `flor-provider unseal oidc`,
}
