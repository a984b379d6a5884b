package main

import (
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/manual"
	"github.com/florete/florete/internal/release"
	"github.com/florete/florete/internal/terminal"
)

// newRoot returns the root command with the given name. It contains all commands, in the groups of
// the help.
func newRoot(name string, t *target) *cobra.Command {
	root := &cobra.Command{
		Use:   name,
		Short: "Run the providers of a Florete cluster",
		Long: `flor-provider is the program that runs on the provider hosts of a Florete cluster. systemd runs
one process of it for each kind of need that the host provides. Operators run its other commands
as root on a provider host, for tasks that florctl does not do. For most tasks, use florctl on
your own machine.

The help of the commands uses these words:

  need             something that a host requests, such as a certificate
  provider         a process that answers requests for needs of one kind
  provider host    a host on which providers run
  config provider  the provider that offers hosts their documents
  document         a signed description of what a host does, such as its manifest
  policy           the document that says which requests the providers of a host grant
  store            the etcd that several provider hosts share to keep their state`,
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

// examples contains the examples of the commands that do not define examples themselves.
var examples = map[string]string{
	"audit": `# Find out whether somebody edited or removed rows.
  flor-provider audit --verify
  # Print the next 1000 rows after the row with this time.
  flor-provider audit --json --limit 1000 --after 2026-07-14T08:30:00.123456789Z`,
	"install-cert": `# Install the certificate in the file issuing.crt.
  flor-provider install-cert < issuing.crt`,
	"rotate-seal": `# Replace the sealing key of the kind oidc.
  flor-provider rotate-seal oidc`,
	"run": `# Run the provider of certificates.
  flor-provider run cert`,
	"state backup": `# Write the state of all providers on this host to forge.state.
  flor-provider state backup forge.state`,
	"state migrate": `# Wait at most five minutes.
  flor-provider state migrate --timeout 5m`,
	"state restore": `# Restore the state from the backup forge.state.
  flor-provider state restore forge.state`,
	"unseal": `# Decrypt the sealing key of the kind oidc.
  flor-provider unseal oidc`,
}
