package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/nix/operator/authority"
	"github.com/florete/florete/providers/ca"
)

func newCAEnrolmentCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "enrolment --dir DIR",
		Short: "Renew the certificate that signs identity files",
		Long: `Renew enrol.crt, the certificate that signs identity files. Run this command when enrol.crt
expires or after you replaced the root, on the machine that has the root key. The new
certificate is for the same key, enrol.key. If there is no enrol.key, the command creates it.

To replace the key too:

  1. Revoke the old certificate with florctl revoke --serial.
  2. Remove enrol.crt.
  3. Run this command.`,
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
