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
		Short: "Sign the certificate with which florctl id issue makes identity files",
		Long: `Sign enrol.crt, with which florctl id issue makes identity files, with the root's key:
when it ends, or the root is another. Its key, enrol.key, stays, and is made where there is
none: for another key remove enrol.crt, once florctl revoke --serial has revoked it.`,
		Args: cobra.NoArgs,
	}
	dir := cmd.Flags().String("dir", ".", "`DIR`ectory of the root, with ca.crt and ca.key")
	lifetime := cmd.Flags().Duration("lifetime", ca.IssuingLifetime, "of the certificate, but no longer than the root's")
	open := agefile.Opening(cmd, "ca-", "the root's key, where it is sealed")
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
