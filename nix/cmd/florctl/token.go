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
		Long: `Create a join token. A machine with this token can ask to become a host of the cluster. The
flake must declare this host without sshHostKey. The command prints the token once, and the
provider keeps only a hash of it.

On the machine, run flor join - and pass the token on standard input. Then admit the machine
with florctl join approve HOST.

With --approve and --key, the machine that uses the token is admitted at once. Such a token is
valid for one host and one use.

To revoke a token, run florctl join token revoke.`,
	}
	f := cmd.Flags()
	var t join.Token
	f.StringVar(&t.Hosts, "host", "", "name of the `HOST` that a machine may become, or a pattern such as lab-*")
	f.IntVar(&t.Uses, "uses", 1, "`NUMBER` of machines that may use the token")
	lifetime := f.Duration("lifetime", time.Hour, "time until the token expires, at most seven days (168h)")
	approve := f.Bool("approve", false, "admit the machine that uses the token at once, without florctl join approve")
	keyFile := f.String("key", "", "`FILE` that contains the secret signing key, such as signing.key from florctl init; for --approve")
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
	cmd := &cobra.Command{Use: "list [FLAKE]", Short: "Print the join tokens", Long: `Print the join tokens of the cluster. A machine uses a join token to ask to become a host. For
each token, the command prints its ID, its hosts, the number of uses left and the time when it
expires.`}
	show := terminal.Shown(cmd, "print the tokens as a JSON list")
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
		Long: `Revoke a join token, so that no more machines can use it. TOKEN is an ID that florctl join token list
prints. Machines that have already joined are not affected: revoke the key of such a machine
with florctl revoke --host-key.`,
	}
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error { return c.RevokeToken(cmd.Context(), args[0]) })
}
