package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/token"
	"github.com/florete/florete/providers/token/rules"
)

func newTenantCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "tenant", Short: "Change the rules of tenants at run time"}
	policy := &cobra.Command{Use: "policy", Short: "Change what subjects may do in a tenant"}
	grouping := &cobra.Command{Use: "grouping", Short: "Change the roles of members of a tenant"}
	for _, remove := range []bool{false, true} {
		policy.AddCommand(newRuleCmd(remove, "policy", "policies", "A policy permits SUBJECT to do ACTION with OBJECT.", "rbac.policy.manage on OBJECT", []string{"SUBJECT", "ACTION", "OBJECT"}, func(trustDomain string, args []string) any {
			return rules.Policy{Subject: subject(trustDomain, args[0]), Action: args[1], Object: args[2]}
		}))
		grouping.AddCommand(newRuleCmd(remove, "grouping", "groupings", "A grouping gives MEMBER the role ROLE in the tenant.", "rbac.assignment.manage", []string{"MEMBER", "ROLE"}, func(trustDomain string, args []string) any {
			return rules.Grouping{Member: subject(trustDomain, args[0]), Role: args[1]}
		}))
	}
	cmd.AddCommand(newTenantListCmd(), newTenantRulesCmd(), policy, grouping, newTenantDeleteCmd())
	return cmd
}

// subject returns a rule's subject as a full ID: an identity of the cluster may be given by its
// path alone, as in the flake.
func subject(trustDomain, s string) string {
	if strings.Contains(s, ":") {
		return s
	}
	return "spiffe://" + trustDomain + "/" + s
}

// newRuleCmd returns the command that adds one rule to a tenant, or removes it. what names the
// words of a rule, meaning says what the rule does, and permission is what changing it requires.
func newRuleCmd(remove bool, noun, nouns, meaning, permission string, what []string, rule func(trustDomain string, args []string) any) *cobra.Command {
	verb, inverse, path, short := "add", "remove", nouns, "Add a "+noun+" to a tenant"
	if remove {
		verb, inverse, path, short = "remove", "add", nouns+"/remove", "Remove a "+noun+" from a tenant"
	}
	cmd := &cobra.Command{
		Use:   verb + " TENANT " + strings.Join(what, " ") + " [FLAKE]",
		Short: short,
		Long: short + ` at run time, without a change of the flake.
` + meaning + `

The topology must have runtimeRules for the tenant. Tokens that are issued from now on follow the
change. Tokens that were issued before do not change until they expire. To undo the command, run
florctl tenant ` + noun + ` ` + inverse + ` with the same words.

Write an identity of the cluster as in the topology, such as service/wiki. Write any other subject
or member as subject:ISSUER/SUB, group:ISSUER/GROUP or role:NAME. The tenant must permit you
` + permission + `.`,
	}
	show := terminal.Shown(cmd, "print the rule as a JSON object")
	n := 1 + len(what)
	return onCluster(cmd, n, func(c published.Cluster, args []string) error {
		var r token.Rule
		at, err := c.Ask(cmd.Context(), token.Name, tenantPath(args[0], path), rule(c.Topology.TrustDomain, args[1:n]), &r)
		if err != nil {
			return err
		}
		has := "has at run time"
		if remove {
			has = "no longer has at run time"
		}
		return show(r, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s: tenant %s %s %s; tokens issued before do not change until they expire\n", at, args[0], has, r)
			return err
		})
	})
}

func tenantPath(tenant, path string) string {
	return "/v1/tenants/" + url.PathEscape(tenant) + "/" + path
}

func newTenantListCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "list [FLAKE]", Short: "Print the tenants", Long: `Print the tenants of the cluster. A tenant is a set of rules about who may do what. A provider
applies these rules when it issues tokens. The list also contains tenants that were removed from
the flake, as long as the provider keeps their keys and rules.`}
	show := terminal.Shown(cmd, "print the tenants as a JSON list")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		var all token.Tenants
		if _, err := c.Ask(cmd.Context(), token.Name, "/v1/tenants", nil, &all); err != nil {
			return err
		}
		return show(append([]token.Kept{}, all.Tenants...), func(w io.Writer) error {
			t := terminal.NewTable(w, "TENANT", "POLICIES", "GROUPINGS", "AT RUN TIME", "DROPPED", "DELETED")
			for _, of := range all.Tenants {
				runtime := "no"
				if of.RuntimeRules != nil {
					runtime = "yes"
				}
				t.Row(of.Tenant, of.Policies, of.Groupings, runtime, when(of.Dropped), when(of.Until))
			}
			return t.Flush()
		})
	})
}

// when formats a time for people, and an absent one as "-".
func when(t unixtime.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func newTenantRulesCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "rules TENANT [FLAKE]", Short: "Print the rules of a tenant", Long: `Print the rules of a tenant that you may view. The list contains the rules in the flake, and the
rules that florctl tenant policy and florctl tenant grouping added at run time.`}
	show := terminal.Shown(cmd, "print the rules as a JSON list")
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error {
		var all token.TenantRules
		if _, err := c.Ask(cmd.Context(), token.Name, tenantPath(args[0], "rules"), nil, &all); err != nil {
			return err
		}
		rules := slices.Concat([]token.Rule{}, all.Policies, all.Groupings)
		return show(rules, func(w io.Writer) error {
			t := terminal.NewTable(w, "RULE", "FROM", "BY", "ADDED", "IGNORED")
			for _, r := range rules {
				t.Row(r, r.Origin, cmp.Or(r.By, "-"), when(r.Added), cmp.Or(r.Ignored, "-"))
			}
			return t.Flush()
		})
	})
}

func newTenantDeleteCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete TENANT [FLAKE]",
		Short: "Delete the keys and rules of a tenant that the flake no longer has",
		Long: `Delete the keys and the run-time rules of a tenant that was removed from the flake. You cannot
undo a deletion. Without this command, the provider keeps the keys and rules for 30 days, in
case the tenant returns to the flake.

The command fails while the flake has the tenant. It also fails for an hour after the removal,
because tokens of the tenant may still be in use.`,
	}
	force := cmd.Flags().Bool("force", false, "delete even if tokens of the tenant may still be in use")
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error {
		at, err := c.Ask(cmd.Context(), token.Name, tenantPath(args[0], "delete"), token.Deletion{Force: *force}, &token.Kept{})
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: the keys and run-time rules of tenant %s are deleted\n", at, args[0])
		return nil
	})
}
