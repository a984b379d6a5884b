package main

import (
	"fmt"
	"io"
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
	show := shown(cmd, "print JSON")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		all, err := client.Each(c.Providers, func(at *client.Provider) ([]join.Token, error) { return at.Tokens(cmd.Context()) }, func(t join.Token) string { return t.ID })
		if err != nil {
			return err
		}
		return show(all, func(w io.Writer) error {
			t := terminal.NewTable(w, "TOKEN", "HOSTS", "LEFT", "UNTIL", "APPROVES", "BY")
			for _, of := range all {
				until := of.Until.UTC().Format(time.RFC3339)
				if !of.Revoked.IsZero() {
					until = "revoked"
				} else if time.Now().After(of.Until.Time) {
					until = "over"
				}
				approves := "-"
				if of.Grant != nil {
					approves = "by itself"
				}
				t.Row(fmt.Sprintf("%.16s", of.ID), of.Hosts, fmt.Sprintf("%d of %d", of.Left, of.Uses), until, approves, of.By)
			}
			return t.Flush()
		})
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
