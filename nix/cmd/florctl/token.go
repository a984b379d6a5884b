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
	cmd := &cobra.Command{Use: "token", Short: "Manage join tokens"}
	cmd.AddCommand(newTokenCreateCmd(), newTokenListCmd(), newTokenRevokeCmd())
	return cmd
}

func newTokenCreateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create [FLAKE] --host HOST",
		Short: "Create a join token",
		Long: `Create a join token, and print it once. A machine uses it with flor join - to become a host that the
flake declares without sshHostKey. You then admit the machine with florctl join approve HOST. With
--approve and the signing key, the bearer of the token is admitted at once; such a token is for one
host and one use. The provider keeps only a hash of the token. florctl token revoke takes it back.`,
	}
	f := cmd.Flags()
	var t join.Token
	f.StringVar(&t.Hosts, "host", "", "`HOST` that may join, or a pattern such as lab-*")
	f.IntVar(&t.Uses, "uses", 1, "`NUMBER` of devices that may join")
	lifetime := f.Duration("lifetime", time.Hour, "lifetime of the token, at most seven days")
	approve := f.Bool("approve", false, "admit the device that joins with the token without florctl join approve")
	keyFile := f.String("key", "", "`FILE` of the secret signing key, in Nix format, for --approve")
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
	cmd := &cobra.Command{Use: "list [FLAKE]", Short: "Print the join tokens", Long: `Print the join tokens with their IDs, the hosts they are for, the uses that are left and when they
end.`}
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
		Short: "Revoke a join token",
		Long: `Revoke a join token. TOKEN is an ID that florctl token list prints. Devices that already joined are
not affected: revoke those with florctl revoke --host-key.`,
	}
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error { return c.RevokeToken(cmd.Context(), args[0]) })
}
