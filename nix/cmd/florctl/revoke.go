package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/revocation"
)

// revoking is what florctl revoke and florctl reinstate have in common.
type revoking struct {
	cmd     *cobra.Command
	cluster func(ctx context.Context, args []string) (published, error)
	keyFile *string
	signed  *string
	host    string
	keys    []string
	serials []string
	valid   time.Duration
	wait    time.Duration
	force   bool
}

func newRevoking(cmd *cobra.Command) *revoking {
	r := &revoking{cmd: cmd, cluster: ofCluster(cmd), keyFile: cmd.Flags().String("key", "", "secret signing key `FILE`, in Nix format"), signed: signedFlag(cmd)}
	f := cmd.Flags()
	f.StringVar(&r.host, "host", "", "a `HOST`, with all that it was given: the same as node/HOST")
	f.StringArrayVar(&r.keys, "host-key", nil, "an SSH host `KEY`, or its fingerprint SHA256:…")
	f.StringArrayVar(&r.serials, "serial", nil, "one certificate, by its serial `NUMBER` in hex, as florctl audit has it")
	f.DurationVar(&r.valid, "lifetime", revocation.Lifetime, "until a newer list is due, which --renew and florctl publish sign")
	f.DurationVar(&r.wait, "wait", 10*time.Second, "how long to wait until hosts report that the list is in force")
	f.BoolVar(&r.force, "force", false, "also where a host reports a newer list than providers have: hosts that have it refuse one that drops its entries")
	cmd.Args = words(0, 2)
	return r
}

// named reports whether flags name what is meant, so that all arguments are the flake.
func (r *revoking) named() bool { return r.host != "" || len(r.keys) > 0 || len(r.serials) > 0 }

// target is what the arguments and flags name, and the cluster.
func (r *revoking) target(args []string) (t revocation.Target, p published, err error) {
	id := ""
	if !r.named() {
		if len(args) == 0 {
			return t, p, errors.New("found too few words, want an ID such as user/alice, --host, --host-key or --serial")
		}
		id, args = args[0], args[1:]
	}
	if r.host != "" {
		id = string(spiffe.KindNode) + "/" + r.host
	}
	if p, err = r.cluster(r.cmd.Context(), args); err != nil {
		return t, p, err
	}
	if id != "" {
		if !strings.Contains(id, "/") {
			return t, p, fmt.Errorf("%q: want --host %[1]s for a host, or an ID such as user/%[1]s", id)
		}
		if !strings.Contains(id, "://") {
			id = "spiffe://" + p.topology.TrustDomain + "/" + id
		}
		if t.ID, err = spiffe.ParseID(id); err == nil {
			err = declaredDomain(p.topology, t.ID)
		}
		if err != nil {
			return t, p, err
		}
	}
	for _, serial := range r.serials {
		serial = strings.ToLower(strings.ReplaceAll(serial, ":", ""))
		if serial = strings.TrimLeft(serial, "0"); serial == "" || strings.Trim(serial, "0123456789abcdef") != "" {
			return t, p, fmt.Errorf("--serial %q: want a number in hex", serial)
		}
		t.Certificates = append(t.Certificates, serial)
	}
	for _, key := range r.keys {
		if !strings.HasPrefix(key, "SHA256:") {
			if key, err = revocation.Fingerprint(key); err != nil {
				return t, p, fmt.Errorf("--host-key: %w", err)
			}
		}
		t.Keys = append(t.Keys, key)
	}
	return t, p, nil
}

// declaredDomain refuses an identity of a trust domain that the flake does not have: nobody here
// verifies those.
func declaredDomain(t compile.Topology, id spiffe.ID) error {
	known := []string{t.TrustDomain}
	for _, name := range slices.Sorted(maps.Keys(t.Federated)) {
		known = append(known, t.Federated[name].TrustDomain)
	}
	if slices.Contains(known, id.TrustDomain()) {
		return nil
	}
	return fmt.Errorf("%s: of trust domain %s, want one of %s, as federated in the flake has them", id, id.TrustDomain(), strings.Join(known, ", "))
}

// declared are the fingerprints of the flake's hosts.
func declared(t compile.Topology) map[spiffe.ID]string {
	all := map[spiffe.ID]string{}
	for _, h := range t.Hosts {
		if f, err := revocation.Fingerprint(h.SSHHostKey); err == nil {
			all[h.ID] = f
		}
	}
	return all
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
			return r.supply(*supply, args)
		}
		if *r.keyFile == "" {
			return errors.New("--key: missing, want the file of a secret key whose public half trust.signingKeys has")
		}
		var t revocation.Target
		var p published
		var err error
		if *renew {
			p, err = r.cluster(cmd.Context(), args)
		} else {
			t, p, err = r.target(args)
		}
		if err != nil {
			return err
		}
		r.warn(p.topology, t)
		for id, key := range declared(p.topology) {
			if id == t.ID {
				t.Keys = append(t.Keys, key)
			} else if slices.Contains(t.Keys, key) {
				t.Before = append(t.Before, id)
			}
		}
		return r.change(p, func(list *trust.Revocations) error { revocation.Revoke(list, t); return nil })
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
		t, p, err := r.target(args)
		if err != nil {
			return err
		}
		err = r.change(p, func(list *trust.Revocations) error { return revocation.Reinstate(list, t) })
		if err == nil || errors.Is(err, errAttention) {
			for _, command := range requestsOf(p.topology, t.ID) {
				fmt.Fprintf(cmd.OutOrStdout(), "its host requests another certificate within the hour, at once by: %s\n", command)
			}
		}
		return err
	}
	return cmd
}

// requestsOf returns the commands by which hosts request the certificates of a reinstated identity at
// once: those of before stay revoked.
func requestsOf(t compile.Topology, id spiffe.ID) (all []string) {
	for _, host := range slices.Sorted(maps.Keys(t.Hosts)) {
		h := t.Hosts[host]
		need := ""
		switch {
		case h.ID == id:
			need = "cert-node"
		case id.TrustDomain() == t.TrustDomain && id.Kind() == spiffe.KindUser && slices.Contains(h.Users, id.Name()):
			need = "cert-user-" + id.Name()
		}
		if need != "" {
			all = append(all, fmt.Sprintf("ssh root@%s %s refetch %s", host, h.Instance.Program("flor"), need))
		}
	}
	return all
}

// change signs the next list, and has all providers offer it.
func (r *revoking) change(p published, with func(*trust.Revocations) error) error {
	key, err := signingKey(*r.keyFile)
	if err != nil {
		return err
	}
	began := time.Now()
	record, err := openRecord(*r.keyFile, *r.signed, p.topology.Name)
	if err != nil {
		return err
	}
	next, err := p.nextList(r.cmd.Context(), key, record, r.valid, r.force, with)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.cmd.OutOrStdout(), "revocation list %d is offered; the next one is due on %s\n", next.Number, next.NextUpdate.UTC().Format(time.DateOnly))
	return p.await(r.cmd, next, began, r.wait)
}

// supply has providers offer a list that was signed before.
func (r *revoking) supply(file string, args []string) error {
	p, err := r.cluster(r.cmd.Context(), args)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s, list, err := revocation.Supply(b)
	if err == nil {
		err = s.Verify(list, p.topology.Name, p.topology.Trust.SigningKeys)
	}
	if err == nil {
		err = p.offer(r.cmd.Context(), s)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	fmt.Fprintf(r.cmd.OutOrStdout(), "revocation list %d is offered\n", list.Number)
	return p.await(r.cmd, list, time.Now(), r.wait)
}

// nextList signs the list after the newest that there is, and has all providers offer it. What a
// list of before revokes, and was not reinstated, it revokes too.
func (p published) nextList(ctx context.Context, key signature.SecretKey, r *signedRecord, valid time.Duration, force bool, with func(*trust.Revocations) error) (*trust.Revocations, error) {
	if public := key.ToPublicKey().String(); !slices.Contains(p.topology.Trust.SigningKeys, public) {
		return nil, fmt.Errorf("key %s: not among trust.signingKeys of cluster %s: hosts would refuse what it signs", public, p.topology.Name)
	}
	var keep []*trust.Revocations
	last, err := p.continued(ctx, r, func(_, other *trust.Revocations, why error) {
		fmt.Fprintf(os.Stderr, "warning: %v: the next list revokes what either does\n", why)
		keep = append(keep, other)
	})
	if err != nil {
		return nil, err
	}
	next := revocation.Next(last, p.topology.Name, time.Now(), valid)
	for _, other := range keep {
		revocation.Keep(next, last, other)
	}
	ahead, host, err := p.ahead(ctx, last.InForce())
	if err != nil {
		return nil, err
	}
	if ahead != 0 {
		if !force {
			return nil, fmt.Errorf("host %s reports revocation list %d, and providers have %d: copy %s from it and use florctl revoke --supply; or --force, without what that list revokes",
				host, ahead, last.InForce(), hostdir.Instance("").State().Revocations())
		}
		next.Number, next.Former = ahead+1, "" // the list before is not known
	}
	if err := with(next); err != nil {
		return nil, err
	}
	s, err := revocation.Sign(next, key)
	if err != nil {
		return nil, err
	}
	if err := p.offer(ctx, s); err != nil {
		return nil, err
	}
	r.of().Revocations = &s
	return next, r.save()
}
