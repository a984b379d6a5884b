package main

import (
	"fmt"
	"os"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/providers/agefile"
	"github.com/florete/florete/providers/ca"
)

// sealedLikewise refuses a new key that is not sealed where the root's is.
func sealedLikewise(d ca.Dir, to []age.Recipient) error {
	sealed, err := ca.Sealed(d.Path("ca.key"))
	if err != nil || !sealed || len(to) > 0 {
		return err
	}
	if _, err := os.Lstat(d.Path(ca.EnrolmentCertificate)); err == nil {
		return nil // for the key that is there
	}
	return fmt.Errorf("%s: sealed with age, and %s would not be: --seal-to RECIPIENT, --passphrase or --passphrase-file FILE", d.Path("ca.key"), d.Path(ca.EnrolmentKey))
}

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
	identities := agefile.Opening(cmd, "ca-", "the root's key, where it is sealed")
	seal := agefile.Flags(cmd, "a new enrol.key")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d := ca.Dir(*dir)
		if *lifetime < time.Hour {
			return fmt.Errorf("--lifetime %s: want an hour at least, such as 2160h for 90 days", *lifetime)
		}
		if err := secretfile.RefuseTree(d.Path(ca.EnrolmentKey)); err != nil {
			return err
		}
		open, err := identities(d.Path("ca.key"))
		if err != nil {
			return err
		}
		root, done, err := loadRoot(d.Path("ca.crt"), d.Path("ca.key"), open)
		if err != nil {
			return err
		}
		defer done()
		to, err := seal.Recipients(d.Path(ca.EnrolmentKey))
		if err != nil {
			return err
		}
		if err := sealedLikewise(d, to); err != nil {
			return err
		}
		c, err := d.Enrolment(root, *lifetime, time.Now(), to...)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: issues for %s until %s\n", d.Path(ca.EnrolmentCertificate), root.TrustDomain(), c.NotAfter.Format(time.DateOnly))
		return nil
	}
	return cmd
}
