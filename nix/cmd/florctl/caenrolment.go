package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/authority"
	"github.com/florete/florete/providers/agefile"
	"github.com/florete/florete/providers/ca"
)

func newCAEnrolmentCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "enrolment --dir DIR",
		Short: "Sign the certificate that signs identity files",
		Long: `Sign enrol.crt with the root key, when the former certificate ends or the root is another.
florctl id issue signs identity files with it from then on. The key enrol.key stays as it is, and
is created if there is none. For a new key, revoke the former certificate with florctl revoke
--serial, remove enrol.crt, and run this again.`,
		Args: cobra.NoArgs,
	}
	dir := cmd.Flags().String("dir", ".", "`DIR` of ca.crt and ca.key")
	lifetime := cmd.Flags().Duration("lifetime", ca.IssuingLifetime, "lifetime of the certificate, at most that of the root")
	open := agefile.Opening(cmd, "ca-", "the sealed root key")
	seal := agefile.Flags(cmd, "a new enrol.key")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d := ca.Dir(*dir)
		trustDomain, c, err := authority.SignEnrolment(d, open, seal, *lifetime)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: issues for %s until %s\n", d.Path(ca.EnrolmentCertificate), trustDomain, c.NotAfter.Format(time.DateOnly))
		return nil
	}
	return cmd
}
