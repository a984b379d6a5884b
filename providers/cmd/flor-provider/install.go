package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/settings"
)

// installCmd returns the command that installs the issuing certificate after an operator has signed
// it. The provider may run meanwhile: it reads the new certificate within a second.
func installCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install-cert",
		Short: "Install the issuing certificate of this host",
		Long: `Install the issuing certificate of this host, with which the host issues certificates to other
hosts. Run this command as root on a host of the provider of kind cert, after you signed the
host's request issuing.csr with florctl ca sign. The command reads the signed certificate from
standard input. The provider uses the certificate within seconds.

The command fails and changes nothing in these cases:

  - the certificate is for a key that this host does not have
  - the certificate does not chain to a root in the policy`,
	}
	return t.withSettings(cert.Name, cmd, func(cmd *cobra.Command, s *settings.Settings) error {
		policy, err := readPolicy(s)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return err
		}
		a, err := ca.Parse("standard input", text, cert.IssuingKey(s.Dir(cert.Name)))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: systemctl start %s makes it", err, t.Unit("provider-cert.service"))
		}
		if err != nil {
			return err
		}
		if err := cert.Trusted(a, policy); err != nil {
			return err
		}
		path := s.Section.(*cert.Settings).IssuingCertificate
		if err := ca.Save(path, ca.EncodeCertificates(a.Certificate)); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: issues for %s until %s\n", path, a.TrustDomain(), a.Certificate.NotAfter.Format(time.DateOnly))
		return nil
	})
}
