package main

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
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
	host := f.String("host", "", "the `HOST` that it is for, or a pattern such as lab-*")
	uses := f.Int("uses", 1, "how many devices may join with it")
	lifetime := f.Duration("lifetime", time.Hour, "how long it is good, seven days at most")
	approve := f.Bool("approve", false, "approve the device that joins with it, without another look")
	keyFile := f.String("key", "", "secret signing key `FILE`, in Nix format, for --approve")
	cmd.MarkFlagRequired("host")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		if err := joining(c.Topology, *host); err != nil {
			return err
		}
		return c.Providers.First(func(at *client.Provider) error {
			token, err := hostapi.NewJoinToken(at.Host)
			if err != nil {
				return err
			}
			t := join.Token{ID: hostapi.TokenID(token.Public()), Hosts: *host, Uses: *uses, Until: unixtime.Of(time.Now().Add(*lifetime))}
			if *approve {
				if t.Grant, err = grant(c.Topology, token, t, *keyFile); err != nil {
					return err
				}
			}
			if _, err := at.CreateToken(cmd.Context(), t); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "join token %s for %q, at %s, good for %d uses until %s: flor join - there, with it on standard input\n", t.ID[:16], t.Hosts, at.Host, t.Uses, t.Until.UTC().Format(time.RFC3339))
			fmt.Fprintln(cmd.OutOrStdout(), token)
			return nil
		})
	})
}

// joining refuses hosts of which none joins.
func joining(t compile.Topology, pattern string) error {
	for name, h := range t.Hosts {
		if fits, err := path.Match(pattern, name); err != nil {
			return fmt.Errorf("--host %q: %w", pattern, err)
		} else if fits && h.SSHHostKey == "" {
			return nil
		}
	}
	return fmt.Errorf("--host %q: no such host in cluster %s is without sshHostKey: one that has it enrols by that, without a token", pattern, t.Name)
}

// grant signs that the bearer of a token decides.
func grant(t compile.Topology, token hostapi.JoinToken, record join.Token, keyFile string) (*trust.SignedGrant, error) {
	key, err := pinnedKey(t, keyFile)
	if err != nil {
		return nil, err
	}
	h, ok := t.Hosts[record.Hosts]
	if !ok || record.Uses != 1 {
		return nil, errors.New("--approve is for one host by its name, and one use")
	}
	text, sig, err := key.SignJSON(trust.JoinGrant{
		Schema: trust.JoinGrantSchema, Format: document.NewestFormat, Cluster: t.Name, Node: h.ID, Token: token.Public(), Until: record.Until,
	}, trust.JoinGrantText)
	return &trust.SignedGrant{Grant: text, Signature: sig}, err
}

// pinnedKey returns a signing key that hosts of the cluster verify with.
func pinnedKey(t compile.Topology, file string) (published.Key, error) {
	key, err := published.ReadKey(file, "")
	if err == nil {
		err = key.CheckOf(t, "providers")
	}
	return key, err
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
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error {
		var at *client.Provider
		var id string
		err := c.Providers.All(func(some *client.Provider) error {
			tokens, err := some.Tokens(cmd.Context())
			i := slices.IndexFunc(tokens, func(t join.Token) bool { return len(args[0]) >= 8 && strings.HasPrefix(t.ID, args[0]) })
			if i >= 0 && at == nil {
				at, id = some, tokens[i].ID
			}
			return err
		})
		if err != nil {
			return err
		}
		if at != nil {
			t, err := at.RevokeToken(cmd.Context(), id)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "join token %.16s for %q is good no more\n", t.ID, t.Hosts)
			}
			return err
		}
		return fmt.Errorf("no join token %.64q: want the first eight letters or more of one that florctl token list has", args[0])
	})
}
