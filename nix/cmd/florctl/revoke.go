package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/nix/operator/revocation"
)

// revoking holds the flags and steps shared by all commands that sign a revocation list.
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
	r := &revoking{cmd: cmd, cluster: ofCluster(cmd), key: together(cmd)}
	f := cmd.Flags()
	f.StringVar(&r.host, "host", "", "name of a `HOST`; the entry covers the host and everything issued to it, the same as the ID node/HOST")
	f.StringArrayVar(&r.keys, "host-key", nil, "SSH host `KEY` of a machine, or its fingerprint SHA256:…; may be repeated")
	f.StringArrayVar(&r.serials, "serial", nil, "serial `NUMBER` of one certificate in hexadecimal, as florctl audit prints it; may be repeated")
	f.DurationVar(&r.Valid, "lifetime", revocation.Lifetime, "time until the list must be signed again, with florctl revoke --renew or florctl publish")
	f.DurationVar(&r.Wait, "wait", 10*time.Second, "time to wait until hosts report that they apply the list")
	f.BoolVar(&r.Force, "force", false, "sign the list although a host reports a newer list than the providers have; hosts refuse a list without the entries that they have")
	cmd.Args = words(0, 2)
	return r
}

// named reports whether flags name the target, so that the only argument is the flake.
func (r *revoking) named() bool { return r.host != "" || len(r.keys) > 0 || len(r.serials) > 0 }

// target reads the cluster and the key, and returns the target that the arguments and flags name.
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
		Short: "Revoke an identity, a machine, a certificate or an SSH host key",
		Long: `Take access away at once, for example when a person leaves or a machine is lost. The command
adds an entry to the revocation list, signs the list, and sends it to the config providers.
Hosts apply the list within seconds: they refuse the revoked identity, and close its
connections. The identity stays revoked until you run florctl reinstate, even if documents are
published or rolled back.

  florctl revoke user/alice --key …                 a person, on every device
  florctl revoke --host elm --key …                 a machine, with everything issued to it
  florctl revoke --host-key SHA256:… --key …        the SSH host key of a machine, and what was
                                                    issued for it while the flake has the key
  florctl revoke --serial 3f9a… --key …             one certificate
  florctl revoke spiffe://blue.example/user/eve …   an identity of a foreign trust domain

The command prints the hosts that have not reported the new list yet. It exits 2 if there are
any.

If trust.threshold in the topology is above one, another operator first runs the same command
with --sign-only FILE. Within a week, run the command with --with FILE.`,
	}
	r := newRevoking(cmd)
	renew := cmd.Flags().Bool("renew", false, "sign the current list again without a change, before it is due")
	supply := cmd.Flags().String("supply", "", "send the list of a host, its `FILE` revocations.json, to providers that were restored from a backup")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *supply != "" {
			c, err := r.cluster(args)
			if err != nil {
				return err
			}
			return c.Supply(cmd.Context(), *supply, r.Wait)
		}
		if !cmd.Flags().Changed("key") {
			return errors.New("--key: missing, want the file with a secret key whose public half is in trust.signingKeys")
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
		return signedOnly(c.Revoke(cmd.Context(), r.Revising, t))
	}
	return cmd
}

func newReinstateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reinstate [ID] [FLAKE] --key FILE",
		Short: "Reinstate a revoked identity",
		Long: `Give back the access that florctl revoke took away. The command removes an entry from the
revocation list, signs the list, and sends it to the config providers. Hosts apply the list
within seconds.

Certificates that were issued before stay revoked. A host requests new certificates within an
hour, or at once if you run flor refetch on it. To undo the command, run florctl revoke again.`,
	}
	r := newRevoking(cmd)
	cmd.MarkFlagRequired("key")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, c, err := r.target(args)
		if err != nil {
			return err
		}
		return signedOnly(c.Reinstate(cmd.Context(), r.Revising, t))
	}
	return cmd
}
