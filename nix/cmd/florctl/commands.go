package main

import (
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/manual"
	"github.com/florete/florete/internal/release"
	"github.com/florete/florete/internal/terminal"
)

// newRoot returns the program with all its commands, in the groups of the help.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "florctl",
		Short: "Operate a Florete cluster",
		Long: `florctl is the program with which operators manage a Florete cluster. Run it on your own
machine, in the directory of the flake that describes the cluster. It adds hosts, services and
people to the flake, signs and publishes the documents of hosts, and shows the state of hosts.

The help of the commands uses these words:

  FLAKE            directory or reference of the flake (default: the current directory)
  topology         the description of the cluster in the flake
  host             a machine of the cluster
  document         what florctl compiles from the flake for a host, and signs
  need             something that a host requests, such as a certificate
  provider         a program that answers requests for needs of one kind
  config provider  the provider that offers hosts their documents
  provider host    a host on which providers run
  role             a named set of services; whoever has the role reaches the services
  root             the certificate authority of the cluster; its key is kept offline`,
		Version:       release.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	terminal.AddCommands(root, examples,
		terminal.CommandGroup{Title: "Cluster", Commands: []*cobra.Command{newInitCmd(), newServiceCmd(), newValidateCmd(), newPlanCmd(), newExplainCmd(), newWhoCanCmd(), newGraphCmd(), newCompileCmd()}},
		terminal.CommandGroup{Title: "Hosts", Commands: []*cobra.Command{newHostCmd(), newJoinCmd(), newIdentityCmd(), newDeployCmd(), newStatusCmd(), newUnitsCmd(), newBundleCmd()}},
		terminal.CommandGroup{Title: "People", Commands: []*cobra.Command{newUserCmd(), newTenantCmd()}},
		terminal.CommandGroup{Title: "Access and secrets", Commands: []*cobra.Command{newRevokeCmd(), newReinstateCmd(), newSuspendCmd(), newUnsuspendCmd(), newRevocationsCmd(), newAccessCmd(), newSessionsCmd(), newRotateCmd(), newSecretCmd()}},
		terminal.CommandGroup{Title: "Providers", Commands: []*cobra.Command{newCACmd(), newStoreCmd(), newStateCmd()}},
		terminal.CommandGroup{Title: "Releases", Commands: []*cobra.Command{newPublishCmd(), newRolloutCmd(), newVersionsCmd(), newDiffCmd(), newRollbackCmd()}},
		terminal.CommandGroup{Title: "Audit", Commands: []*cobra.Command{newAuditCmd()}},
	)
	root.AddCommand(manual.Command())
	return root
}

// examples are the help examples of commands, by path, that define none in their constructor.
var examples = map[string]string{
	"access approve": `# Approve the request with this ID.
  florctl access approve 5f0c`,
	"access end": `# End the grant with this ID.
  florctl access end 5f0c`,
	"access list": `# Print the requests and the grants in force.
  florctl access list`,
	"access request": `# Request the role oncall for two hours.
  florctl access request oncall --for 2h --reason "search is down"`,
	"audit": `# Print the requests that providers refused.
  florctl audit --outcome denied`,
	"bundle": `# Pack the bundle of the host ursula.
  florctl bundle --host ursula --out ursula.tar.gz`,
	"ca enrolment": `# Sign a new enrol.crt with the root key in ~/demo-ca.
  florctl ca enrolment --dir ~/demo-ca`,
	"ca init": `# Create the root of the trust domain demo.flor in ~/demo-ca.
  florctl ca init --trust-domain demo.flor --out ~/demo-ca`,
	"ca sign": `# Fetch the request of the host forge, sign it, and install the certificate there.
  ssh root@forge cat /var/lib/florete-provider/cert/issuing.csr |
    florctl ca sign --ca-cert ca.crt --ca-key ca.key |
    ssh root@forge flor-provider install-cert`,
	"ca status": `# Show which hosts trust the roots in the flake and in ~/demo-ca.
  florctl ca status --dir ~/demo-ca`,
	"ca web": `# Write the root certificate to web-root.crt.
  florctl ca web --out web-root.crt`,
	"compile": `# Write the documents of the host ursula to the directory documents.
  florctl compile --host ursula --out documents`,
	"deploy": `# Deploy two hosts. Each goes back if it does not report within five minutes.
  florctl deploy ursula raishan --timeout 5m`,
	"diff": `# Compare the versions with these two serials.
  florctl diff 1784011430 1784015030`,
	"explain": `# Explain why the user alice reaches the service wiki, or does not.
  florctl explain user/alice wiki`,
	"graph": `# Draw the cluster in the current directory.
  florctl graph --format svg --out cluster.svg`,
	"host add": `# Add the host ursula, at this address, to the group home.
  florctl host add ursula 192.0.2.7 --group home`,
	"identity issue": `# Issue an identity file for the host raishan, encrypted to its SSH host key.
  florctl identity issue --host raishan --key ~/demo-ca/signing.key --out raishan.age`,
	"identity list": `# Print the certificates that were signed with ~/demo-ca/enrol.key.
  florctl identity list --dir ~/demo-ca`,
	"init": `# Create the cluster demo in the directory demo.
  florctl init demo`,
	"join list": `# Print the devices that ask to become hosts.
  florctl join list`,
	"join reject": `# Refuse the device that asks to become the host raishan.
  florctl join reject raishan`,
	"plan": `# Compare the working tree with the branch main.
  florctl plan --from main`,
	"publish": `# Publish the committed flake in the current directory.
  florctl publish --key ~/demo-ca/signing.key`,
	"reinstate": `# Give the user alice access again.
  florctl reinstate user/alice --key ~/demo-ca/signing.key`,
	"unsuspend": `# End the suspension of the host ursula.
  florctl unsuspend ursula --key ~/demo-ca/signing.key`,
	"revocations": `# Print the revocation list, and the hosts that have an older one.
  florctl revocations`,
	"revoke": `# Revoke the user alice on every device.
  florctl revoke user/alice --key ~/demo-ca/signing.key`,
	"rollback": `# Publish the documents of the version with this serial again.
  florctl rollback 1784011430 --key ~/demo-ca/signing.key`,
	"rollout abort": `# Offer all hosts the previous documents again.
  florctl rollout abort`,
	"rollout pause": `# Offer the new documents to no more hosts.
  florctl rollout pause`,
	"rollout resume": `# Continue with the next wave.
  florctl rollout resume`,
	"rollout status": `# Print the waves, and the hosts that the rollout waits for.
  florctl rollout status`,
	"rotate": `# Replace the secret of the need oidc-wiki on the host ursula.
  florctl rotate ursula oidc-wiki`,
	"secret list": `# List the secrets, without their content.
  florctl secret list`,
	"secret record": `# Record the public keys of secrets in facts.json.
  florctl secret record facts.json`,
	"secret set": `# Send the content of the file smtp-password as the secret wiki/smtp.
  florctl secret set wiki/smtp --from smtp-password`,
	"secret unset": `# Remove the secret wiki/smtp.
  florctl secret unset wiki/smtp`,
	"service add": `# Add the service wiki, which listens on port 8080 of the host ursula.
  florctl service add wiki --host ursula --port 8080`,
	"service rename": `# Rename the service wiki to docs, and print the difference only.
  florctl service rename wiki docs --dry-run`,
	"state backup": `# Write the state of the providers on the host forge to forge.state.
  florctl state backup forge forge.state`,
	"state migrate": `# Wait until the host forge has moved its state.
  florctl state migrate forge`,
	"state restore": `# Restore the state of the providers on the host forge from forge.state.
  florctl state restore forge forge.state`,
	"status": `# Show the table, and print it again every five seconds.
  florctl status --watch`,
	"store init": `# Create the CA of the store in ~/demo-store.
  florctl store init --trust-domain demo.flor --out ~/demo-store`,
	"store issue": `# Issue certificates for the member on the host forge, at this address.
  florctl store issue forge --address 192.0.2.1 --ca-cert ~/demo-store/store-ca.crt --ca-key ~/demo-store/store-ca.key --out forge-store`,
	"suspend": `# Suspend the host ursula.
  florctl suspend ursula --key ~/demo-ca/signing.key`,
	"tenant delete": `# Delete the keys and run-time rules of the removed tenant acme.
  florctl tenant delete acme`,
	"tenant grouping add": `# Give the user bob the role editor in the tenant acme.
  florctl tenant grouping add acme user/bob role:editor`,
	"tenant grouping remove": `# Take the role editor in the tenant acme from the user bob.
  florctl tenant grouping remove acme user/bob role:editor`,
	"tenant list": `# Print the tenants.
  florctl tenant list`,
	"tenant policy add": `# Permit the user bob to read reports in the tenant acme.
  florctl tenant policy add acme user/bob read reports`,
	"tenant policy remove": `# No longer permit the user bob to read reports in the tenant acme.
  florctl tenant policy remove acme user/bob read reports`,
	"tenant rules": `# Print the rules of the tenant acme.
  florctl tenant rules acme`,
	"join token create": `# Create a token with which three machines may become hosts named lab-….
  florctl join token create --host 'lab-*' --uses 3`,
	"join token list": `# Print the join tokens.
  florctl join token list`,
	"join token revoke": `# Revoke the token with this ID.
  florctl join token revoke 3f9a1c2b`,
	"units": `# Print the services and units of the host ursula.
  florctl units --host ursula`,
	"user add": `# Add the person alice, with the role reader.
  florctl user add alice --role reader`,
	"validate": `# Check the flake in the current directory, and fail if there are warnings.
  florctl validate --strict`,
	"versions": `# Print the published versions.
  florctl versions`,
	"who-can": `# List who can reach the service wiki.
  florctl who-can wiki`,
}
