package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
)

func newSuspendCmd() *cobra.Command {
	return suspension(&cobra.Command{
		Use:   "suspend HOST [FLAKE] --key FILE",
		Short: "Suspend a host or another identity",
		Long: `Take access away for a while, for example while you investigate an incident. HOST is a host
name, or another identity such as user/alice. Within seconds, all hosts refuse the suspended
identity and close its connections. The suspended host keeps its state, keys and certificates.
To end the suspension, run florctl unsuspend.

The command prints the hosts that have not reported the new list yet. It exits 2 if there are
any.`,
	}, revocation.Suspend)
}

func newUnsuspendCmd() *cobra.Command {
	return suspension(&cobra.Command{
		Use:   "unsuspend HOST [FLAKE] --key FILE",
		Short: "End a suspension",
		Long: `End a suspension that florctl suspend began. HOST is a host name, or another identity such as
user/alice. Within seconds, all hosts accept the identity again.

Certificates from before the suspension are valid again. If some of them expired meanwhile, the
host replaces them within an hour, or at once if you run flor refetch on it.`,
	}, revocation.Unsuspend)
}

func suspension(cmd *cobra.Command, with func(*trust.Revocations, spiffe.ID) error) *cobra.Command {
	r := newRevoking(cmd)
	for _, other := range []string{"host", "host-key", "serial"} {
		cmd.Flags().Lookup(other).Hidden = true
	}
	cmd.MarkFlagRequired("key")
	cmd.Args = words(1, 2)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.named() {
			return errors.New("florctl suspend takes a host or another identity: to revoke a key or a certificate, run florctl revoke")
		}
		if !strings.Contains(args[0], "/") {
			args[0] = string(spiffe.KindNode) + "/" + args[0]
		}
		t, c, err := r.target(args)
		if err != nil {
			return err
		}
		c.WarnUndeclared(t)
		return signedOnly(c.Revise(cmd.Context(), r.Revising, func(list *trust.Revocations) error { return with(list, t.ID) }))
	}
	return cmd
}
