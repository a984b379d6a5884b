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
		Long: `Replace enrol.crt, the certificate with which florctl id issue signs the certificates in
identity files. Run this command where the root key is, when enrol.crt expires or after the root
was replaced. The new certificate is for the same key, enrol.key. If there is no such key yet,
the command creates it.

To replace the key too, revoke the old certificate with florctl revoke --serial, remove
enrol.crt, and run the command again.`,
		Args: cobra.NoArgs,
	}
	dir := cmd.Flags().String("dir", ".", "`DIR` that contains ca.crt and ca.key")
	lifetime := cmd.Flags().Duration("lifetime", ca.IssuingLifetime, "time until the certificate expires, at most that of the root")
	open := agefile.Opening(cmd, "ca-", "the root key, if the key is encrypted")
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
