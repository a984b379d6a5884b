package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/revocation"
)

func newSuspendCmd() *cobra.Command {
	return suspension(&cobra.Command{
		Use:   "suspend HOST [FLAKE] --key FILE",
		Short: "Suspend a host or another identity",
		Long: `Sign a revocation list that suspends a host, or another identity such as user/alice. Within seconds
all hosts refuse it, and close its connections. It keeps its state, keys and certificates. florctl
resume ends the suspension. Prints the hosts that have not reported the list yet, and exits 2 when
there are any.`,
	}, revocation.Suspend)
}

func newResumeCmd() *cobra.Command {
	return suspension(&cobra.Command{
		Use:   "resume HOST [FLAKE] --key FILE",
		Short: "End a suspension",
		Long: `Sign a revocation list without a suspension. Hosts apply it within seconds, and the former
certificates are valid again. The host replaces certificates that ended meanwhile within an hour, or
at once with flor refetch.`,
	}, revocation.Resume)
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
			return errors.New("a suspension is of a host or another identity: florctl revoke has keys and certificates")
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
