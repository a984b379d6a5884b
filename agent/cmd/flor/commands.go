package main

import (
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/manual"
	"github.com/florete/florete/internal/release"
	"github.com/florete/florete/internal/terminal"
)

// newRoot returns the root command of flor with all subcommands, in the groups that the help shows.
// The argument name is the name under which the program was invoked.
func newRoot(name string, m *instance) *cobra.Command {
	root := &cobra.Command{
		Use:   name,
		Short: "Run a host of a Florete cluster",
		Long: `flor is the program that runs on each host of a Florete cluster. Whoever looks after a host uses
it to see the state of the host, to find faults, and to join a cluster. systemd runs the
commands of the last group. To manage the whole cluster, use florctl on an operator's machine.

The help of the commands uses these words:

  host        a machine of the cluster
  document    a signed description of what a host does, such as its manifest
  need        something that a host requests, such as a certificate
  provider    a program that answers requests for needs of one kind
  forwarder   the program that carries connections between programs and services`,
		Version:       release.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	m.flag(root)
	terminal.AddCommands(root, examples,
		terminal.CommandGroup{Title: "This host", Commands: []*cobra.Command{newStatusCmd(m), newDoctorCmd(m), newSyncCmd(m), newRefetchCmd(m), newRotateCmd(m), newWitnessCmd(m)}},
		terminal.CommandGroup{Title: "Services", Commands: []*cobra.Command{newPingCmd(m), newTopCmd(m), newWhoisCmd(m), newRemoteCmd(m), newSessionsCmd(m), newSSHCmd(m)}},
		terminal.CommandGroup{Title: "Joining a cluster", Commands: []*cobra.Command{newJoinCmd(m), newIdentityCmd(m)}},
		terminal.CommandGroup{Title: "Run by systemd", Commands: []*cobra.Command{newActivateCmd(m), newAgentCmd(m), newCredentialsCmd(m), newGuardCmd(m), newHostCmd(m), newHostsFileCmd(m), newIngressCmd(m), newRecorderCmd(m), newStoreCertsCmd(m), newWorkloadCmd(m)}},
	)
	root.AddCommand(manual.Command())
	return root
}

// examples contains the help example of each command that does not define one itself, by the path
// of the command.
var examples = map[string]string{
	"activate": `# Request every need that is due, and end.
  flor activate --once`,
	"agent reload": `# Let a new forwarder take over new connections.
  flor agent reload`,
	"agent run": `# Run the forwarder with the default settings.
  flor agent run`,
	"credentials": `# Serve credentials on the socket that systemd passes.
  flor credentials`,
	"doctor": `# Print what is wrong with this host.
  flor doctor`,
	"identity install": `# Install the identity file raishan.age.
  flor identity install raishan.age`,
	"guard": `# Keep the table until interrupted.
  flor guard`,
	"host run": `# Serve the API until interrupted.
  flor host run`,
	"hosts-file": `# Keep the names in /etc/hosts until interrupted.
  flor hosts-file`,
	"identity create": `# Write the request for an identity file to request.json.
  flor identity create > request.json`,
	"ingress": `# Configure nginx until interrupted.
  flor ingress`,
	"join": `# Join with the token in the file token.
  flor join - < token`,
	"recorder": `# Record sessions on the socket that systemd passes.
  flor recorder`,
	"refetch": `# Fetch the certificate of the node again.
  flor refetch cert-node`,
	"rotate": `# Replace the secret of the need oidc-wiki.
  flor rotate oidc-wiki`,
	"status": `# Show the state of this host.
  flor status`,
	"store-certificates": `# Restart units that started before the certificates changed.
  flor store-certificates`,
	"sync": `# Try the newest documents.
  flor sync`,
	"sync arm": `# Prepare to go back from the unpacked bundle in this directory.
  flor sync arm /var/lib/florete/documents`,
	"sync rollback": `# Wait for the deadline of the pending change.
  flor sync rollback`,
	"top": `# Show the traffic until interrupted.
  flor top`,
	"witness": `# Show the audit logs that this host has seen.
  flor witness`,
	"witness accept": `# Accept the log of kind cert on the provider host forge.
  flor witness accept forge cert --reason 'restored from a backup'`,
	"workload": `# Serve the API on the socket that systemd passes.
  flor workload`,
}
