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
		Use:           "florctl",
		Short:         "Operate a Florete cluster",
		Version:       release.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	terminal.AddCommands(root, examples,
		terminal.CommandGroup{Title: "Cluster", Commands: []*cobra.Command{newInitCmd(), newServiceCmd(), newValidateCmd(), newPlanCmd(), newExplainCmd(), newWhoCanCmd(), newGraphCmd(), newCompileCmd()}},
		terminal.CommandGroup{Title: "Hosts", Commands: []*cobra.Command{newHostCmd(), newJoinCmd(), newTokenCmd(), newIDCmd(), newDeployCmd(), newStatusCmd(), newUnitsCmd(), newBundleCmd()}},
		terminal.CommandGroup{Title: "People", Commands: []*cobra.Command{newUserCmd(), newTenantCmd()}},
		terminal.CommandGroup{Title: "Access and secrets", Commands: []*cobra.Command{newRevokeCmd(), newReinstateCmd(), newSuspendCmd(), newResumeCmd(), newRevocationsCmd(), newRotateCmd(), newSecretCmd()}},
		terminal.CommandGroup{Title: "Providers", Commands: []*cobra.Command{newCACmd(), newStoreCmd(), newStateCmd()}},
		terminal.CommandGroup{Title: "Releases", Commands: []*cobra.Command{newPublishCmd(), newRolloutCmd(), newVersionsCmd(), newDiffCmd(), newRollbackCmd()}},
		terminal.CommandGroup{Title: "Audit", Commands: []*cobra.Command{newAuditCmd()}},
	)
	root.AddCommand(manual.Command())
	return root
}

// examples are the help examples of commands, by path, that define none in their constructor.
var examples = map[string]string{
	"audit":        `florctl audit --outcome denied`,
	"bundle":       `florctl bundle --host ursula --out ursula.tar.gz`,
	"ca enrolment": `florctl ca enrolment --dir ~/demo-ca`,
	"ca init":      `florctl ca init --trust-domain demo.flor --out ~/demo-ca`,
	"ca sign": `ssh root@forge cat /var/lib/florete-provider/cert/issuing.csr |
    florctl ca sign --ca-cert ca.crt --ca-key ca.key |
    ssh root@forge flor-provider install-cert`,
	"ca status":              `florctl ca status --dir ~/demo-ca`,
	"ca web":                 `florctl ca web --out web-root.crt`,
	"compile":                `florctl compile --host ursula --out documents`,
	"deploy":                 `florctl deploy ursula raishan --timeout 5m`,
	"diff":                   `florctl diff 1784011430 1784015030`,
	"explain":                `florctl explain user/alice wiki`,
	"graph":                  `florctl graph --format svg --out cluster.svg`,
	"host add":               `florctl host add ursula 192.0.2.7 --group home`,
	"id issue":               `florctl id issue --host raishan --key ~/demo-ca/signing.key --out raishan.age`,
	"id list":                `florctl id list --dir ~/demo-ca`,
	"init":                   `florctl init demo`,
	"join list":              `florctl join list`,
	"join reject":            `florctl join reject raishan`,
	"plan":                   `florctl plan --from main`,
	"publish":                `florctl publish --key ~/demo-ca/signing.key`,
	"reinstate":              `florctl reinstate user/alice --key ~/demo-ca/signing.key`,
	"resume":                 `florctl resume ursula --key ~/demo-ca/signing.key`,
	"revocations":            `florctl revocations`,
	"revoke":                 `florctl revoke user/alice --key ~/demo-ca/signing.key`,
	"rollback":               `florctl rollback 1784011430 --key ~/demo-ca/signing.key`,
	"rollout abort":          `florctl rollout abort`,
	"rollout pause":          `florctl rollout pause`,
	"rollout resume":         `florctl rollout resume`,
	"rollout status":         `florctl rollout status`,
	"rotate":                 `florctl rotate ursula oidc-wiki`,
	"secret list":            `florctl secret list`,
	"secret record":          `florctl secret record facts.json`,
	"secret set":             `florctl secret set wiki/smtp --from smtp-password`,
	"secret unset":           `florctl secret unset wiki/smtp`,
	"service add":            `florctl service add wiki --host ursula --port 8080`,
	"state backup":           `florctl state backup forge forge.state`,
	"state migrate":          `florctl state migrate forge`,
	"state restore":          `florctl state restore forge forge.state`,
	"status":                 `florctl status --watch`,
	"store init":             `florctl store init --trust-domain demo.flor --out ~/demo-store`,
	"store issue":            `florctl store issue forge --ca-cert ca.crt --ca-key ca.key --out forge`,
	"suspend":                `florctl suspend ursula --key ~/demo-ca/signing.key`,
	"tenant delete":          `florctl tenant delete acme`,
	"tenant grouping add":    `florctl tenant grouping add acme user/bob role:editor`,
	"tenant grouping remove": `florctl tenant grouping remove acme user/bob role:editor`,
	"tenant list":            `florctl tenant list`,
	"tenant policy add":      `florctl tenant policy add acme user/bob read reports`,
	"tenant policy remove":   `florctl tenant policy remove acme user/bob read reports`,
	"tenant rules":           `florctl tenant rules acme`,
	"token create":           `florctl token create --host 'lab-*' --uses 3`,
	"token list":             `florctl token list`,
	"token revoke":           `florctl token revoke 3f9a1c2b`,
	"units":                  `florctl units --host ursula`,
	"user add":               `florctl user add alice --role reader`,
	"validate":               `florctl validate --strict`,
	"versions":               `florctl versions`,
	"who-can":                `florctl who-can wiki`,
}
