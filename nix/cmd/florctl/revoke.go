package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/revocation"
)

// revoking has the flags and steps that all commands share which sign a revocation list.
type revoking struct {
	published.Revising
	cmd     *cobra.Command
	cluster func(args []string) (published.Cluster, error)
	key     func() (published.Key, error)
	host    string
	keys    []string
	serials []string
}

func newRevoking(cmd *cobra.Command) *revoking {
	r := &revoking{cmd: cmd, cluster: ofCluster(cmd), key: signing(cmd)}
	f := cmd.Flags()
	f.StringVar(&r.host, "host", "", "a `HOST`, with all that it was given: the same as node/HOST")
	f.StringArrayVar(&r.keys, "host-key", nil, "an SSH host `KEY`, or its fingerprint SHA256:…")
	f.StringArrayVar(&r.serials, "serial", nil, "one certificate, by its serial `NUMBER` in hex, as florctl audit has it")
	f.DurationVar(&r.Valid, "lifetime", revocation.Lifetime, "until a newer list is due, which --renew and florctl publish sign")
	f.DurationVar(&r.Wait, "wait", 10*time.Second, "how long to wait until hosts report that the list is in force")
	f.BoolVar(&r.Force, "force", false, "also where a host reports a newer list than providers have: hosts that have it refuse one that drops its entries")
	cmd.Args = words(0, 2)
	return r
}

// named reports whether flags name what is meant, so that all arguments are the flake.
func (r *revoking) named() bool { return r.host != "" || len(r.keys) > 0 || len(r.serials) > 0 }

// target reads the cluster and the key, and returns what the arguments and flags name.
func (r *revoking) target(args []string) (t revocation.Target, c published.Cluster, err error) {
	id := ""
	if !r.named() {
		if len(args) == 0 {
			return t, c, errors.New("found too few words, want an ID such as user/alice, --host, --host-key or --serial")
		}
		id, args = args[0], args[1:]
	}
	if r.host != "" {
		id = string(spiffe.KindNode) + "/" + r.host
	}
	if c, err = r.cluster(args); err == nil {
		t, err = c.Target(id, r.keys, r.serials)
	}
	if err == nil {
		r.Key, err = r.key()
	}
	return t, c, err
}

func newRevokeCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke [ID] [FLAKE] --key FILE",
		Short: "Revoke an identity, a machine with all that it was given, a certificate or an SSH host key",
		Long: `Sign a revocation list that has one entry more, and have the config providers push it to
all hosts, which refuse from then on what it revokes, and close its connections:

  florctl revoke user/alice --key signing.key       everywhere, whatever device
  florctl revoke --host elm --key signing.key       the machine, and all that it was given
  florctl revoke --host-key SHA256:… --key …        what proves a machine, and what it got so far
                                                    while the flake has the key
  florctl revoke --serial 3f9a… --key signing.key   one certificate
  florctl revoke spiffe://blue.example/user/eve …   of a foreign trust domain, here alone

What is revoked stays so, whatever documents come or go back, until florctl reinstate. Prints
the hosts that have not reported the list yet, and exits 2 where there are any.`,
	}
	r := newRevoking(cmd)
	renew := cmd.Flags().Bool("renew", false, "sign the list anew, as it is, before a newer one is due")
	supply := cmd.Flags().String("supply", "", "have providers offer a list that a host has, `FILE` revocations.json, after they were restored")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *supply != "" {
			c, err := r.cluster(args)
			if err != nil {
				return err
			}
			return c.Supply(cmd.Context(), *supply, r.Wait)
		}
		if !cmd.Flags().Changed("key") {
			return errors.New("--key: missing, want the file of a secret key whose public half trust.signingKeys has")
		}
		var t revocation.Target
		var c published.Cluster
		var err error
		if !*renew {
			t, c, err = r.target(args)
		} else if c, err = r.cluster(args); err == nil {
			r.Key, err = r.key()
		}
		if err != nil {
			return err
		}
		c.WarnUndeclared(t)
		return c.Revoke(cmd.Context(), r.Revising, t)
	}
	return cmd
}

func newReinstateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reinstate [ID] [FLAKE] --key FILE",
		Short: "Reinstate what was revoked",
		Long: `Sign a revocation list without an entry, and have the config providers push it. Of an
identity, the certificates that were issued until now stay revoked: its host requests others
within the hour, at once with flor refetch.`,
	}
	r := newRevoking(cmd)
	cmd.MarkFlagRequired("key")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, c, err := r.target(args)
		if err != nil {
			return err
		}
		return c.Reinstate(cmd.Context(), r.Revising, t)
	}
	return cmd
}
