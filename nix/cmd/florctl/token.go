package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/join"
)

func newTokenCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Keep the join tokens of hosts without an SSH host key in the flake"}
	cmd.AddCommand(newTokenCreateCmd(), newTokenListCmd(), newTokenRevokeCmd())
	return cmd
}

func newTokenCreateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create [FLAKE] --host HOST",
		Short: "Make a join token, and print it once",
		Long: `Make a token with which a device joins as a host that the flake declares without
sshHostKey: flor join - there, then florctl join approve HOST here. With --approve, for
one host and one use, whoever has the token is approved at once; that needs the signing key.
The provider stores its hash alone: what is printed is not to be had again.`,
	}
	f := cmd.Flags()
	var t join.Token
	f.StringVar(&t.Hosts, "host", "", "the `HOST` that it is for, or a pattern such as lab-*")
	f.IntVar(&t.Uses, "uses", 1, "how many devices may join with it")
	lifetime := f.Duration("lifetime", time.Hour, "how long it is good, seven days at most")
	approve := f.Bool("approve", false, "approve the device that joins with it, without another look")
	keyFile := f.String("key", "", "secret signing key `FILE`, in Nix format, for --approve")
	cmd.MarkFlagRequired("host")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		var key *published.Key
		if *approve {
			k, err := published.ReadKey(*keyFile, "")
			if err != nil {
				return err
			}
			key = &k
		}
		t.Until = unixtime.Of(time.Now().Add(*lifetime))
		return c.CreateToken(cmd.Context(), t, key)
	})
}

func newTokenListCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "list [FLAKE]", Short: "Print the join tokens on record"}
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		all, err := client.Each(c.Providers, func(at *client.Provider) ([]join.Token, error) { return at.Tokens(cmd.Context()) }, func(t join.Token) string { return t.ID })
		if err != nil {
			return err
		}
		if *asJSON {
			return terminal.PrintJSON(cmd.OutOrStdout(), all)
		}
		w := terminal.NewTable(cmd.OutOrStdout(), "TOKEN", "HOSTS", "LEFT", "UNTIL", "APPROVES", "BY")
		for _, t := range all {
			until := t.Until.UTC().Format(time.RFC3339)
			if !t.Revoked.IsZero() {
				until = "revoked"
			} else if time.Now().After(t.Until.Time) {
				until = "over"
			}
			approves := "-"
			if t.Grant != nil {
				approves = "by itself"
			}
			w.Row(fmt.Sprintf("%.16s", t.ID), t.Hosts, fmt.Sprintf("%d of %d", t.Left, t.Uses), until, approves, t.By)
		}
		return w.Flush()
	})
}

func newTokenRevokeCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke TOKEN [FLAKE]",
		Short: "Have a join token be good no more",
		Long: `Have a join token be good no more, by the name that florctl token list has for it. Devices
that joined with it stay: florctl revoke --host-key.`,
	}
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error { return c.RevokeToken(cmd.Context(), args[0]) })
}
